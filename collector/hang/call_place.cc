#include "collector/hang/call_place.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "collector/file/hang_notes.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostFrames = 3;
constexpr uint64_t kLongCallNs = 2'000'000'000;

std::string_view FileOf(const StackFrame& frame) {
  return std::string_view(frame.file).substr(frame.file.rfind('/') + 1);
}

bool IsDistributed(const StackFrame& frame) {
  return frame.file.find("/torch/distributed/") != frame.file.npos;
}

bool IsPrograms(const StackFrame& frame) {
  return !IsDistributed(frame) && frame.file.find("-packages/") == frame.file.npos &&
         frame.file.find("/lib/python") == frame.file.npos && !frame.file.starts_with("<");
}

std::string PlaceText(const StackFrame& frame) {
  return frame.line == 0 ? std::string(FileOf(frame))
                         : fmt::format("{}:{}", FileOf(frame), frame.line);
}

const ThreadStack* HolderOf(const ProcessStacks& stacks) {
  for (const ThreadStack& thread : stacks.threads) {
    if (thread.holds_gil && thread.thread != stacks.process) return &thread;
  }
  return nullptr;
}

bool WaitsForGil(const ThreadStack& stack) { return stack.does == "waits for the GIL"; }

// Of the program's rather than of a library's.
const ThreadStack* OtherThreadOf(const ProcessStacks& stacks) {
  const ThreadStack* found = nullptr;
  for (const ThreadStack& thread : stacks.threads) {
    if (thread.thread == stacks.process || thread.frames.empty()) continue;
    if (std::ranges::any_of(thread.frames, IsPrograms)) return &thread;
    if (found == nullptr) found = &thread;
  }
  return found;
}

// One that ended badly; of the others none while some are left, as those were not needed any more.
const EndedChild* ChildToTell(const RankLook& look) {
  constexpr uint64_t kLatelyNs = 120'000'000'000;
  const auto bad = std::ranges::find_if(look.ended_children, &EndedChild::is_bad);
  if (bad != look.ended_children.end()) return &*bad;
  if (look.ended_children.empty() || !look.workers.empty()) return nullptr;
  const EndedChild& last = look.ended_children.back();
  return last.is_loaders || last.age_ns > kLatelyNs ? nullptr : &last;
}

}  // namespace

bool IsInLoader(const ThreadStack& stack) {
  return std::ranges::any_of(stack.frames, [](const StackFrame& frame) {
    return frame.file.find("/torch/utils/data/") != frame.file.npos;
  });
}

std::string CollectiveOf(const RankLook& look) {
  const ThreadStack* const stack = MainThreadOf(look.stacks);
  if (stack == nullptr || WaitsForGil(*stack)) return "";
  for (const StackFrame& frame : stack->frames) {
    if (!IsDistributed(frame)) break;
    // torch.distributed.run and the like run a program inside them.
    if (frame.function != "wrapper" && frame.function != "inner")
      return CollectiveWord(frame.function);
  }
  return look.is_in_torch ? std::string(kUnnamedCollective) : "";
}

bool WaitsForDevice(const RankLook& look) {
  return !look.cuda_call.empty() && look.cuda_call_ns >= kLongCallNs && CollectiveOf(look).empty();
}

std::string CallAt(const RankLook& look) {
  const ThreadStack* const stack = MainThreadOf(look.stacks);
  std::string name = WaitsForDevice(look) ? look.cuda_call : CollectiveOf(look);
  if (stack == nullptr) return name;
  const std::string place = ProgramPlaceOf(*stack);
  if (WaitsForDevice(look)) return fmt::format("{} at {}", name, place);
  return name == kUnnamedCollective ? "the collective at " + place
                                    : fmt::format("{} ({})", name, place);
}

std::string WaitsIn(const RankLook& look, size_t ranks) {
  if (!WaitsForDevice(look)) return "in " + CallAt(look);
  return fmt::format("for {} ({})", ranks == 1 ? "its device" : "their devices", CallAt(look));
}

std::string ProgramPlaceOf(const ThreadStack& stack) {
  const auto own = std::ranges::find_if(stack.frames, IsPrograms);
  if (own != stack.frames.end()) return PlaceText(*own);
  return stack.frames.empty() ? "" : PlaceText(stack.frames.front());
}

std::string ChainOf(const ThreadStack& stack) {
  std::string text;
  size_t count = 0;
  for (const StackFrame& frame : stack.frames) {
    if (count == kMostFrames) break;
    if (count > 0 && !IsPrograms(frame)) continue;
    const bool is_library = !IsPrograms(frame);
    text += fmt::format("{}{}{}", text.empty() ? "" : " ← ", PlaceText(frame),
                        is_library ? fmt::format(" ({})", frame.function) : "");
    ++count;
  }
  return text;
}

std::string DescribePlace(const RankLook& look) {
  const ThreadStack* const stack = MainThreadOf(look.stacks);
  if (stack == nullptr) {
    return fmt::format("Its stack is not known: {}", look.stacks.problem.empty()
                                                         ? "its main thread runs no Python"
                                                         : look.stacks.problem);
  }
  if (const ThreadStack* const other = OtherThreadOf(look.stacks);
      IsAtProgramsEnd(*stack) && other) {
    const ProcessStacks& process = look.stacks;
    const std::string end = process.exception.empty() ? "at its end or by an exception"
                            : process.exception_frames.empty()
                                ? "by " + process.exception
                                : fmt::format("by {}, at {}", process.exception,
                                              ProgramPlaceOf({.frames = process.exception_frames}));
    return fmt::format(
        "Its main thread has left the program, {}, and waits for a thread that {} at {}", end,
        other->does.empty() ? "stands" : other->does, ChainOf(*other));
  }
  std::string text =
      fmt::format("Its main thread {}{} at {}", stack->does.empty() ? "stands" : stack->does,
                  stack->holds_gil ? ", with the GIL," : "", ChainOf(*stack));
  if (WaitsForGil(*stack)) {
    if (const ThreadStack* const holder = HolderOf(look.stacks)) {
      text += fmt::format("; a thread that {} at {} holds it",
                          holder->does.empty() ? "stands" : holder->does, ChainOf(*holder));
    }
  }
  if (IsInLoader(*stack)) {
    for (const ProcessStacks& worker : look.workers) {
      const ThreadStack* const main = MainThreadOf(worker);
      if (main == nullptr) continue;
      text += fmt::format("; worker {} {} at {}", worker.process,
                          main->does.empty() ? "stands" : main->does, ChainOf(*main));
      break;
    }
  }
  if (const EndedChild* const child = ChildToTell(look)) {
    EndedChild told = *child;
    told.is_loaders = told.is_loaders || IsInLoader(*stack);
    text += "; " + ChildEndText(told, "ago");
  }
  return text;
}

bool IsInDebugger(const RankLook& look) {
  if (look.tracer != 0) return true;
  for (const ThreadStack& thread : look.stacks.threads) {
    for (const StackFrame& frame : thread.frames) {
      const std::string_view file = FileOf(frame);
      if (file == "bdb.py" || file == "pdb.py" || frame.file.find("/debugpy/") != frame.file.npos ||
          frame.file.find("/pydevd") != frame.file.npos) {
        return true;
      }
    }
  }
  return false;
}

bool ReadsTerminal(const RankLook& look) {
  const ThreadStack* const stack = MainThreadOf(look.stacks);
  return stack != nullptr &&
         (stack->does.starts_with("reads /dev/pts/") || stack->does.starts_with("reads /dev/tty"));
}

std::string RankText(const std::vector<uint32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
    if (end - i > 1) text += fmt::format("{}{}", end - i > 2 ? "-" : ", ", ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string DurationText(uint64_t ns) {
  const uint64_t seconds = ns / 1'000'000'000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

std::string EndText(const ProcessEnd& end) {
  const int status = end.wait_status.value_or(0);
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* const name = ::sigabbrev_np(signal);
  std::string text = name == nullptr ? fmt::format("signal {}", signal)
                                     : fmt::format("signal {} (SIG{})", signal, name);
  if (signal == SIGABRT) {
    text +=
        ": an assertion, or gloo, which aborts a rank that gets more bytes than it waits for, "
        "as another's tensor has another shape or dtype; --level full names that one";
  } else if (end.was_out_of_memory) {
    text += *end.was_out_of_memory ? " of the kernel, which was short of memory"
                                   : ", not for want of memory: a scheduler, or kill -9";
  } else if (signal == SIGKILL) {
    text += ": the kernel short of memory, a scheduler, or kill -9";
  } else if (signal == SIGTERM) {
    text += ": a scheduler, kill, or a launcher for a reason of its own";
  }
  return text;
}

std::string EndText(const EndedRank& ended) {
  const std::string text = EndText(ended.end);
  return ended.exception.empty() ? text : fmt::format("{} ({})", text, ended.exception);
}

std::string ChildEndText(const EndedChild& child, std::string_view before) {
  const std::string age = child.age_ns < kLongCallNs
                              ? fmt::format("{:.1f} s", static_cast<double>(child.age_ns) / 1e9)
                              : DurationText(child.age_ns);
  const std::string_view what = child.is_loaders ? "DataLoader worker" : "child process";
  return fmt::format("its {} {} ended {} {}{}", what, child.pid, age, before,
                     child.end.wait_status ? ", by " + EndText(child.end) : "");
}

std::string LastPlaceText(const EndedRank& ended) {
  constexpr double kNsPerSecond = 1e9;
  std::string text;
  if (!ended.last_place.empty()) {
    text = fmt::format("its last stack, {:.1f} s before it was seen to have ended, is at {}",
                       static_cast<double>(ended.last_age_ns) / kNsPerSecond, ended.last_place);
  }
  if (ended.child) text += (text.empty() ? "" : "; ") + ChildEndText(*ended.child, "before it");
  return text;
}

}  // namespace ranktap::collector
