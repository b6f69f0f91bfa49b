#include "collector/file/read_run_info.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "collector/file/owned_file.h"
#include "proto/redact.h"

namespace ranktap::collector {

Result<RunInfo> ReadRunInfo(const std::string& directory) {
  constexpr size_t kMostBytes = 64u << 20;  // of some 80,000 traces
  const std::string path = directory + "/run.json";
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno == ENOENT) return RunInfo{};
  const Result<std::string> text = ReadRegularFile(path, kMostBytes);
  if (!text) return Failure{text.message()};
  Result<RunInfo> info = ParseRunInfo(*text, path);
  if (info) Redact(&*info);
  return info;
}

void RedactValue(const std::string& name, std::string* value) {
  std::vector<std::string> word = {name + "=" + *value};
  proto::RedactCommand(word);
  *value = word[0].substr(std::min(word[0].size(), name.size() + 1));
}

void Redact(RunInfo* info) {
  proto::RedactCommand(info->command);
  for (auto& [name, value] : info->metadata) RedactValue(name, &value);
  for (TraceInfo& trace : info->traces) {
    proto::RedactText(trace.executable);
    for (std::string& note : trace.notes) proto::RedactText(note);
  }
}

void Redact(v1::Hello* hello) {
  v1::Process& process = *hello->mutable_process();
  std::vector<std::string> words(process.command_line().begin(), process.command_line().end());
  proto::RedactCommand(words);
  process.mutable_command_line()->Assign(words.begin(), words.end());
  proto::RedactText(*process.mutable_executable());
  for (std::string& note : *hello->mutable_notes()) proto::RedactText(note);
}

}  // namespace ranktap::collector
