#include "collector/import/kineto/kineto_threads.h"

#include <string>
#include <vector>

#include "collector/import/kineto/kineto_names.h"

namespace ranktap::collector {

uint16_t KinetoThreads::WriterOf(const KinetoEvent& event) {
  if (has_last_writer_ && event.tid == last_tid_ && event.pid == last_pid_) return last_writer_;
  last_pid_ = event.pid;
  last_tid_ = event.tid;
  has_last_writer_ = true;
  key_.assign(event.pid).append("/").append(event.tid);
  const auto known = writers_.find(key_);
  if (known != writers_.end()) return last_writer_ = known->second;
  if (trace_->writers.size() >= 0xffff) return last_writer_ = 0xffff;  // a hostile file
  last_writer_ = static_cast<uint16_t>(trace_->writers.size());
  writers_.emplace(key_, last_writer_);
  Writer& writer = trace_->writers.emplace_back();
  writer.id = last_writer_;
  int64_t thread = 0;
  ParseInteger(event.tid, &thread);
  writer.thread = static_cast<int32_t>(thread);
  uint64_t pid = 0;
  if (trace_->info.pid == 0 && ParseUnsigned(event.pid, &pid)) trace_->info.pid = Narrow(pid);
  return last_writer_;
}

void KinetoThreads::AddMetadata(const KinetoEvent& event) {
  if (!event.has(Arg::kName)) return;
  if (event.name == "process_name" && process_names_.size() < 0xffff) {
    process_names_.try_emplace(std::string(event.pid), Unescaped(event.text(Arg::kName)));
  }
  if (event.name != "thread_name") return;
  key_.assign(event.pid).append("/").append(event.tid);
  if (thread_names_.size() < 0xffff) thread_names_[key_] = Unescaped(event.text(Arg::kName));
}

void KinetoThreads::NameAll() {
  for (const auto& [thread, writer] : writers_) {
    const auto name = thread_names_.find(thread);
    if (name != thread_names_.end()) trace_->writers[writer].name = name->second;
  }
  const auto process = process_names_.find(std::to_string(trace_->info.pid));
  if (process != process_names_.end()) trace_->info.executable = process->second;
}

std::set<std::string> KinetoThreads::OfHost() const {
  std::vector<bool> of_host(trace_->writers.size());
  const auto add = [&of_host](uint16_t writer) {
    if (writer < of_host.size()) of_host[writer] = true;
  };
  for (const uint16_t writer : trace_->api_calls.writer) add(writer);
  const Operators& ops = trace_->operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] == static_cast<uint8_t>(OperatorKind::kOperator)) add(ops.writer[i]);
  }
  std::set<std::string> processes;
  for (const auto& [thread, writer] : writers_) {
    if (of_host[writer]) processes.insert(thread.substr(0, thread.find('/')));
  }
  for (const std::string& device : devices_) processes.erase(device);
  return processes;
}

}  // namespace ranktap::collector
