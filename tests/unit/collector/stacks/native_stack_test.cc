#include "collector/stacks/native_stack.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "collector/stacks/proc_files.h"
#include "collector/stacks/process_stacks.h"

// Names without C++'s marks, and calls that are not the last of their functions.
extern "C" {
[[gnu::noinline]] int RanktapReadsForEver(int descriptor) {
  char byte;
  return static_cast<int>(::read(descriptor, &byte, 1)) + 1;
}
[[gnu::noinline]] int RanktapCallsWhatReads(int descriptor) {
  return RanktapReadsForEver(descriptor) + 1;
}
}

namespace ranktap::collector {
namespace {

TEST(NativeStackTest, ABlockedThreadIsInTheFunctionThatCalledTheKernelAndInWhatCalledThat) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(RanktapCallsWhatReads(ends[0]));
  const std::string blocked = fmt::format("0 {:#x} ", ends[0]);  // read
  while (!ReadProcFile(fmt::format("/proc/{}/syscall", child)).value_or("").starts_with(blocked)) {
    ::sched_yield();
  }
  const ProcessStacks stacks = ReadProcessStacks(child, /*with_native=*/true);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int end : ends) ::close(end);
  EXPECT_EQ(stacks.problem, "");
  ASSERT_EQ(stacks.threads.size(), 1u);
  const std::vector<NativeFrame>& frames = stacks.threads[0].native;
  const auto reads = std::ranges::find(frames, "RanktapReadsForEver", &NativeFrame::function);
  ASSERT_LT(reads - frames.begin() + 1, static_cast<ptrdiff_t>(frames.size()));
  EXPECT_GT(reads - frames.begin(), 0);  // libc's own call is below it
  EXPECT_EQ(reads[1].function, "RanktapCallsWhatReads");
  EXPECT_TRUE(stacks.threads[0].does.starts_with("reads pipe:[")) << stacks.threads[0].does;
}

TEST(NativeStackTest, WhereAThreadIsBlockedIsToldByTheLastTwoNumbersOfItsSystemCall) {
  const auto in_call = ParseBlockedAt("0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffc10 0x7f20");
  ASSERT_TRUE(in_call);
  EXPECT_EQ(in_call->stack, 0x7ffc10u);
  EXPECT_EQ(in_call->instruction, 0x7f20u);
  EXPECT_TRUE(ParseBlockedAt("-1 0x7ffc10 0x7f20"));
  EXPECT_FALSE(ParseBlockedAt("running"));
  EXPECT_FALSE(ParseBlockedAt(""));
}

}  // namespace
}  // namespace ranktap::collector
