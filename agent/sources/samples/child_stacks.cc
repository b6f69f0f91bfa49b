// Reads of other processes' memory.
// Runs on: see child_stacks.h.  May not: see there.
#include "agent/sources/samples/child_stacks.h"

#include <time.h>

#include <algorithm>

#include "agent/sources/samples/read_files.h"

namespace ranktap::agent::samples {
namespace {

uint64_t CpuNsOf(int32_t process) {
  constexpr uint64_t kSecond = 1'000'000'000;
  // The kernel's own number for it (CPUCLOCK_SCHED): clock_getcpuclockid asks the kernel once more.
  const auto clock = static_cast<clockid_t>(~static_cast<uint32_t>(process) << 3 | 2);
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

void ChildStacks::SetUp(const proto::PythonPlace& place, const proto::PythonLayout& layout) {
  place_ = place;
  layout_ = layout;
  list_.SetUp(place);
}

void ChildStacks::Round(uint64_t now_ns, uint64_t now_ticks, StackNumbers& numbers,
                        SampleLines& lines) {
  constexpr uint64_t kFindPauseNs = 200'000'000;
  if (now_ns >= find_at_ns_) {
    find_at_ns_ = now_ns + kFindPauseNs;
    list_.Find(now_ns);
  }
  now_ns_ = now_ns;
  now_ticks_ = now_ticks;
  looks_.BeginRound(now_ns, now_ticks);
  for (Child& child : list_.children()) LookAt(&child, numbers, lines);
  looks_.EndRound(lines);
}

void ChildStacks::LookAt(Child* child, StackNumbers& numbers, SampleLines& lines) {
  constexpr size_t kMostThreads = 64;
  if (child->kind != Child::Kind::kForked && child->kind != Child::Kind::kStarted) return;
  if (child->kind == Child::Kind::kForked && !list_.IsStillForked(*child)) {
    child->kind = Child::Kind::kUnknown;
    return;
  }
  if (!frames_) {
    frames_.emplace(memory_, place_, layout_);
    threads_.reserve(kMostThreads);
  }
  memory_.SetProcess(child->process);
  frames_->SetShift(child->shift);
  if (!frames_->ReadThreads(&threads_, kMostThreads)) return;
  // Between fork and the child's first steps, and between vfork and exec, its memory has our
  // threads.
  const bool has_main = std::ranges::any_of(threads_, [child](const proto::PythonThread& thread) {
    return thread.thread == child->process;
  });
  if (!has_main) return;
  // The kernel tells another process's time as a whole: it is said to be the main thread's.
  const uint64_t cpu_ns = CpuNsOf(child->process);
  for (const proto::PythonThread& thread : threads_) {
    LookAtThread(*child, thread, thread.thread == child->process ? cpu_ns : 0, numbers, lines);
  }
  looks_.EndProcess(frames_->CountGilWaiters(), lines);
  TellFile(child, lines);
}

void ChildStacks::TellFile(Child* child, SampleLines& lines) {
  constexpr uint64_t kPauseNs = 50'000'000;
  const uint64_t passed = now_ns_ - child->file_asked_ns;
  if (passed < kPauseNs) return;
  const bool is_first = child->file_asked_ns == 0;
  child->file_asked_ns = now_ns_;
  PathBuffer buffer;
  const std::string_view path = FileReadBy(child->process, child->process, &buffer);
  if (!path.empty() && !is_first) lines.AddChildRead(child->process, now_ticks_, passed, path);
}

void ChildStacks::Close(SampleLines& lines) {
  for (Child& child : list_.children()) child.file_asked_ns = 0;
  looks_.Close(lines);
}

void ChildStacks::LookAtThread(const Child& child, proto::PythonThread thread, uint64_t cpu_ns,
                               StackNumbers& numbers, SampleLines& lines) {
  if (thread.thread == 0) return;
  std::span<const proto::PythonFrame> stack;
  bool is_torn = frames_->ReadStack(thread, &stack) == proto::StackRead::kTorn;
  if (is_torn && frames_->Refresh(&thread)) {
    is_torn = frames_->ReadStack(thread, &stack) == proto::StackRead::kTorn;
  }
  if (stack.empty() && !is_torn) return;
  if (looks_.IsNew(thread.thread)) lines.AddChild(thread.thread, child.process);
  // Of another program the same addresses are other code.
  const int32_t space = child.kind == Child::Kind::kForked ? 0 : child.process;
  const uint32_t frame = is_torn ? 0 : numbers.NumberOf(stack, *frames_, lines, space);
  looks_.Add(thread, frame, {cpu_ns});
}

}  // namespace ranktap::agent::samples
