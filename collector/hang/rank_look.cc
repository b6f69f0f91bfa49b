#include "collector/hang/rank_look.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "collector/file/printable.h"
#include "collector/stacks/native_stack.h"
#include "collector/stacks/proc_files.h"
#include "collector/stacks/wait_reason.h"
#include "proto/process_memory.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostWorkers = 8;  // whose stacks are read

uint64_t NumberAt(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
  uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The number behind "NAME:" in a file of such lines; 0: it has none.
uint64_t LineNumber(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const bool is_begin = at == 0 || text[at - 1] == '\n';
    const std::string_view rest = text.substr(at + name.size());
    if (is_begin && rest.starts_with(':')) return NumberAt(rest.substr(1));
  }
  return 0;
}

// Word `index` behind the name in a stat file, the state being 0.
uint64_t StatNumber(std::string_view stat, int index) {
  const size_t end = stat.rfind(')');
  if (end == stat.npos || end + 2 > stat.size()) return 0;
  std::string_view rest = stat.substr(end + 2);
  for (int i = 0; i < index; ++i) {
    const size_t space = rest.find(' ');
    if (space == rest.npos) return 0;
    rest.remove_prefix(space + 1);
  }
  return NumberAt(rest);
}
constexpr int kMinorFaults = 7, kMajorFaults = 9, kUserTicks = 11, kSystemTicks = 12;

uint64_t TicksIn(std::string_view stat) {
  return StatNumber(stat, kUserTicks) + StatNumber(stat, kSystemTicks);
}

uint64_t BytesIn(const std::string& io) {
  return LineNumber(io, "rchar") + LineNumber(io, "wchar");
}

std::string ReadOf(const std::string& folder, const char* name) {
  return ReadProcFile(folder + name).value_or("");
}

// The agent's threads read /proc for ever.
bool IsOurs(std::string_view stat) { return stat.find("(ranktap-") != stat.npos; }

RankWork WorkOf(pid_t pid, const std::vector<pid_t>& children) {
  RankWork work;
  for (const pid_t thread : ThreadsOf(pid)) {
    const std::string folder = fmt::format("/proc/{}/task/{}/", pid, thread);
    const std::string stat = ReadOf(folder, "stat");
    if (IsOurs(stat)) continue;
    work.bytes += BytesIn(ReadOf(folder, "io"));
    work.faults += StatNumber(stat, kMinorFaults) + StatNumber(stat, kMajorFaults);
    if (thread != pid) work.others_cpu += TicksIn(stat);
  }
  for (const pid_t child : children) {
    const std::string folder = fmt::format("/proc/{}/", child);
    work.children_cpu += TicksIn(ReadOf(folder, "stat"));
    work.children_bytes += BytesIn(ReadOf(folder, "io"));
  }
  return work;
}

struct CodeRange {
  uint64_t begin = 0, end = 0;
  bool is_torch = false;  // else the interpreter's
};

bool IsTorchLibrary(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libtorch") || name.starts_with("libc10") ||
         name.starts_with("libnccl") || name.starts_with("libgloo");
}
bool IsInterpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libpython") || name.starts_with("python");
}

std::vector<CodeRange> CodeOf(pid_t pid) {
  const std::string maps = ReadOf(fmt::format("/proc/{}/", pid), "maps");
  std::vector<CodeRange> ranges;
  std::string_view rest = maps;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t path = line.find('/');
    const size_t dash = line.find('-'), space = line.find(' ');
    if (path == line.npos || dash == line.npos || !line.substr(space + 1).starts_with("r-x"))
      continue;
    CodeRange range{.is_torch = IsTorchLibrary(line.substr(path))};
    if (!range.is_torch && !IsInterpreter(line.substr(path))) continue;
    (void)std::from_chars(line.data(), line.data() + dash, range.begin, 16);
    (void)std::from_chars(line.data() + dash + 1, line.data() + space, range.end, 16);
    ranges.push_back(range);
  }
  return ranges;
}

// Whether the first return address on the main thread's stack that is PyTorch's or the
// interpreter's is PyTorch's. The stack pointer is the last word but one of `syscall`.
bool WaitsInTorch(pid_t pid, const std::string& system_call) {
  const auto call = ParseSystemCall(system_call);
  if (!call || !IsFutex(*call)) return false;
  const size_t last = system_call.rfind(' ');
  const size_t before =
      last == system_call.npos || last == 0 ? last : system_call.rfind(' ', last - 1);
  if (before == system_call.npos) return false;
  std::string_view text = std::string_view(system_call).substr(before + 1, last - before - 1);
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t stack = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), stack, 16);
  const std::vector<CodeRange> code = CodeOf(pid);
  proto::ProcessMemory memory(pid);
  std::array<uint64_t, 128> words{};
  constexpr int kMostReads = 8;
  for (int i = 0; i < kMostReads; ++i) {
    if (!memory.Read(stack + i * sizeof(words), words.data(), sizeof(words))) return false;
    for (const uint64_t word : words) {
      for (const CodeRange& range : code) {
        if (word >= range.begin && word < range.end) return range.is_torch;
      }
    }
  }
  return false;
}

// The same by unwinding. Words of calls that are long over lie between the frames: by those alone 2
// of 11 waits for a lock of Python's were taken for collectives.
bool UnwindsToTorch(pid_t pid, const std::string& system_call) {
  const auto at = ParseBlockedAt(system_call);
  if (!at) return true;
  bool is_cut = false;
  for (const NativeFrame& frame :
       NativeStacks(pid, /*with_functions=*/false).Read(pid, *at, &is_cut)) {
    if (IsTorchLibrary(frame.module)) return true;
    if (IsInterpreter(frame.module)) return false;
  }
  return true;
}

// As the process sees itself, in its pid namespace.
pid_t OwnNumberIn(const std::string& status, pid_t pid) {
  const size_t line = status.find("\nNSpid:");
  if (line == status.npos) return pid;
  const std::string_view numbers =
      std::string_view(status).substr(line, status.find('\n', line + 1) - line);
  return static_cast<pid_t>(NumberAt(numbers.substr(numbers.find_last_of("\t ") + 1)));
}

void AddCuda(const CudaState& state, pid_t main_thread, RankLook* look) {
  look->work_ended = state.work_ended;
  if (state.work_ended == 0)
    return;  // an older agent does not tell, and a younger has nothing to wait for
  const auto call = state.calls.find(main_thread);
  if (call == state.calls.end() || call->second.since_ns.value_or(-1) < 0) return;
  look->cuda_call = Printable(call->second.name);
  look->cuda_call_ns = static_cast<uint64_t>(*call->second.since_ns);
}

// By all its threads: the kernel tells nobody else of one at once. RankWork tells of the others.
uint64_t CpuNsOf(pid_t pid) {
  clockid_t clock = 0;
  timespec now{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A short operator in a loop has the same stack most of the time; and what computes for long gives
// the GIL back, as an endless loop in C mostly does not. A rank that has no processor stands still
// whatever it does: at a load of 14 on 2 cores one that evaluated was said to be stuck.
StackMotion MotionOf(pid_t pid, const ThreadStack& first, StackReader* reader) {
  constexpr uint64_t kRunsNs = 2'000'000;
  constexpr auto kLongest = std::chrono::milliseconds(50), kPause = std::chrono::milliseconds(1);
  if (!first.holds_gil) return StackMotion::kChanges;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  const uint64_t began = CpuNsOf(pid);
  for (uint64_t before = began; std::chrono::steady_clock::now() < end;) {
    const ProcessStacks again = reader->Read();
    const ThreadStack* const main = MainThreadOf(again);
    if (main == nullptr || !main->holds_gil || main->frames != first.frames)
      return StackMotion::kChanges;
    const uint64_t ran = CpuNsOf(pid);
    if (ran - began >= kRunsNs) return StackMotion::kStays;
    if (ran == before) std::this_thread::sleep_for(kPause);
    before = ran;
  }
  return StackMotion::kUnknown;
}

}  // namespace

const ThreadStack* MainThreadOf(const ProcessStacks& stacks) {
  for (const ThreadStack& thread : stacks.threads) {
    if (thread.thread == stacks.process && !thread.frames.empty()) return &thread;
  }
  return nullptr;
}

RankLook GlanceAt(uint32_t rank, pid_t pid, CudaStateReader* cuda) {
  RankLook look{.rank = rank, .pid = pid};
  const std::string folder = fmt::format("/proc/{}/task/{}/", pid, pid);
  const std::string status = ReadOf(folder, "status");
  const size_t state = status.find("\nState:\t");
  if (state != status.npos && state + 8 < status.size()) look.state = status[state + 8];
  look.sleeps = LineNumber(status, "voluntary_ctxt_switches");
  look.tracer = static_cast<pid_t>(LineNumber(status, "TracerPid"));
  const std::string runs = ReadOf(folder, "schedstat");
  look.cpu_ns = NumberAt(runs);
  look.queue_ns = runs.empty() ? 0 : NumberAt(std::string_view(runs).substr(runs.find(' ') + 1));
  AddCuda(cuda->Read(), OwnNumberIn(status, pid), &look);
  return look;
}

RankLook LookAt(uint32_t rank, pid_t pid, CudaStateReader* cuda) {
  RankLook look = GlanceAt(rank, pid, cuda);
  const std::vector<pid_t> children = DescendantsOf(pid);
  look.is_full = true;
  look.work = WorkOf(pid, children);
  look.work.work_ended = look.work_ended;
  StackReader reader(pid);
  look.stacks = reader.Read();
  const ThreadStack* const main = MainThreadOf(look.stacks);
  if (main != nullptr && main->does == "runs") look.motion = MotionOf(pid, *main, &reader);
  for (const pid_t child : children) {
    if (look.workers.size() == kMostWorkers) break;
    ProcessStacks stacks = ReadProcessStacks(child);
    if (!stacks.threads.empty()) look.workers.push_back(std::move(stacks));
  }
  const auto condition = ConditionOf(pid, pid);
  look.is_in_torch = condition && WaitsInTorch(pid, condition->system_call) &&
                     UnwindsToTorch(pid, condition->system_call);
  return look;
}

}  // namespace ranktap::collector
