#include "collector/hang/hang_directory.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "collector/file/json.h"
#include "collector/hang/call_place.h"
#include "collector/stacks/proc_files.h"
#include "collector/stacks/stack_groups.h"

namespace ranktap::collector {
namespace {

constexpr const char* kProcFiles[] = {"stat", "status", "wchan", "syscall",
                                      "io",   "limits", "cgroup"};

std::string TimeName(uint64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, ::strftime(text, sizeof(text), "hang-%Y%m%dT%H%M%SZ", &utc)};
}

Json RankJson(const RankLook& look) {
  Json rank;
  rank["rank"] = look.rank;
  rank["pid"] = look.pid;
  rank["state"] = std::string(1, look.state);
  rank["stands_in"] = CollectiveOf(look);
  rank["place"] = DescribePlace(look);
  rank["stack"] = Json::array();
  if (const ThreadStack* const stack = MainThreadOf(look.stacks)) {
    for (const StackFrame& frame : stack->frames) {
      rank["stack"].push_back(fmt::format("{}({}): {}", frame.file, frame.line, frame.function));
    }
  }
  rank["bytes"] = look.work.bytes;
  rank["children_cpu_ticks"] = look.work.children_cpu;
  return rank;
}

}  // namespace

Result<HangDirectory> HangDirectory::Create(int parent, const std::string& path,
                                            uint64_t realtime_ns) {
  Result<RunDirectory> directory = RunDirectory::CreateIn(parent, path, TimeName(realtime_ns));
  if (!directory) return Failure{directory.message()};
  return HangDirectory(std::move(*directory));
}

void HangDirectory::WriteVerdict(const WaitVerdict& verdict,
                                 const std::vector<const RankLook*>& looks, uint64_t realtime_ns) {
  Json object;
  object["format"] = 1;
  object["sentence"] = verdict.sentence;
  object["advice"] = verdict.advice;
  object["cause"] = NameOf(verdict.cause);
  object["realtime_ns"] = realtime_ns;
  object["waited_ns"] = verdict.waited_ns;
  object["waiting"] = verdict.waiting;
  object["awaited"] = verdict.awaited;
  object["ranks"] = Json::array();
  for (const RankLook* const look : looks) object["ranks"].push_back(RankJson(*look));
  verdict_ = WriteJson(object, 2) + "\n";
  Write("hang.json", verdict_);
}

void HangDirectory::WriteStacks(int number, const std::vector<RankLook>& looks) {
  std::vector<RankStacks> processes;
  for (const RankLook& look : looks) {
    processes.push_back({.rank = look.rank, .stacks = look.stacks});
    for (const ProcessStacks& worker : look.workers) {
      processes.push_back({.rank = std::nullopt, .stacks = worker});
    }
  }
  Write(fmt::format("stacks-{}.txt", number), FormatStacks(processes));
}

void HangDirectory::WriteProcFacts(const std::vector<RankLook>& looks) {
  for (const RankLook& look : looks) {
    std::string text;
    for (const char* const name : kProcFiles) {
      const std::string path = fmt::format("/proc/{}/{}", look.pid, name);
      text += fmt::format("==> {} <==\n{}\n", path, ReadProcFile(path).value_or("(not readable)"));
    }
    Write(fmt::format("proc-rank-{:05}.txt", look.rank), text);
  }
}

// Whoever reads hang.json meanwhile gets it whole, with or without.
void HangDirectory::AddCalls(const HangCalls& calls) {
  Json object = ParseJson(verdict_, JsonOrder::kAsAdded);
  if (!object.is_object()) return;
  object["calls"] = {{"cause", calls.cause},      {"ranks", calls.ranks},
                     {"guilty", calls.is_guilty}, {"waiting", calls.waiting},
                     {"finding", calls.finding},  {"advice", calls.advice}};
  Write("hang.json.new", WriteJson(object, 2) + "\n");
  (void)::renameat(directory_.descriptor(), "hang.json.new", directory_.descriptor(), "hang.json");
}

void HangDirectory::Write(const std::string& name, const std::string& text) {
  const FileDescriptor file(::openat(directory_.descriptor(), name.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  size_t written = 0;
  while (file.valid() && written < text.size()) {
    const ssize_t bytes = ::write(file.get(), text.data() + written, text.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    written += static_cast<size_t>(bytes);
  }
  if (file.valid() && written == text.size()) return;
  const int error = errno;
  if (file.valid()) directory_.Remove(name);
  if (!problem_.empty()) return;
  problem_ = SystemFailure(fmt::format("{}/{}: could not be written", path(), name), error).message;
}

}  // namespace ranktap::collector
