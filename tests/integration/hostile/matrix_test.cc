// {level} x {way of loading} x {phase} x {fault}, drawn by a seed: the program ends as bare, and
// what is there verifies. FAULT_SEED and FAULT_COUNT say which cases; FAULT_CASE is one of them, in
// the words that a failure prints. tests/workloads/hosts/matrix.cc does what happens.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <iterator>
#include <random>
#include <sstream>
#include <string>

#include "tests/fault_seed.h"
#include "tests/integration/hostile/differential_run.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

using standin_test::BuildPath;

constexpr double kPatienceS = 60;
constexpr double kAnyTime = 1e9;  // the deadline alone bounds it

const char* const kLevels[] = {"dormant", "ranges", "kernels", "full"};
const char* const kDoors[] = {"preload", "variables"};
const char* const kPhases[] = {"before", "start", "middle", "end"};
const char* const kFaults[] = {"signals", "longjmp",   "cancel", "masked", "fpu",
                               "closed",  "exhausted", "noproc", "fork",   "_Fork",
                               "vfork",   "clone",     "exec",   "none"};
const char* const kEnds[] = {"none",  "exit", "_exit",        "quick_exit", "abort",
                             "raise", "kill", "pthread_exit", "exit_group", "throw"};
// Rule 12 of docs/in-process-rules.md, and those of the start.
const char* const kCalls[] = {
    "fstat",    "newfstatat",    "poll",      "ppoll",       "recvfrom",     "sendmsg",
    "futex",    "clock_gettime", "madvise",   "mmap",        "munmap",       "mprotect",
    "mremap",   "brk",           "prctl",     "setpriority", "pread64",      "socket",
    "connect",  "fcntl",         "close",     "openat",      "fchmod",       "flock",
    "pwrite64", "fstatfs",       "prlimit64", "unlinkat",    "tgkill",       "sigaltstack",
    "getpid",   "gettid",        "clone3",    "sched_yield", "memfd_create", "clock_nanosleep"};
const int kErrors[] = {EPERM,  ENOENT, EINTR,  EIO,    EBADF,  EAGAIN, ENOMEM,
                       EACCES, EINVAL, EMFILE, ENOSPC, ENOSYS, ENOTSUP};
const char* const kLimits[] = {"nofile:0",      "nofile:63",     "nofile:64",    "nofile:513",
                               "nproc:0",       "nproc:1",       "as:0",         "as:67108864",
                               "as:1073741824", "data:0",        "data:8388608", "fsize:0",
                               "fsize:4096",    "fsize:1048576", "stack:16384",  "stack:8388608"};

struct Case {
  std::string level, door, phase, fault;
  uint32_t seed = 0;

  std::string Words() const {
    return level + " " + door + " " + phase + " " + fault + " " + std::to_string(seed);
  }
};

using Random = std::mt19937;

template <typename T, size_t kCount>
const T& OneOf(const T (&all)[kCount], Random* random) {
  return all[(*random)() % kCount];
}

// Kinds first: else nearly each case would be a system call.
std::string DrawFault(Random* random) {
  switch ((*random)() % 6) {
    case 0:
    case 1:
      return std::string("errno:") + OneOf(kCalls, random) + ":" +
             std::to_string(OneOf(kErrors, random));
    case 2:
      return std::string("limit:") + OneOf(kLimits, random);
    case 3:
      return OneOf(kEnds, random);
    case 4:
      return "memory";
    default:
      return OneOf(kFaults, random);
  }
}

Case DrawCase(Random* random) {
  Case drawn;
  drawn.level = OneOf(kLevels, random);
  drawn.door = OneOf(kDoors, random);
  drawn.phase = OneOf(kPhases, random);
  drawn.fault = DrawFault(random);
  drawn.seed = static_cast<uint32_t>((*random)());
  return drawn;
}

// For the fault `memory`: which allocations of the agent fail.
Variables Refusing(const Case& drawn) {
  if (drawn.fault != "memory") return {};
  constexpr const char* kEvery[] = {"0", "1", "3", "40"};
  return {{"LD_PRELOAD", BuildPath("workloads/refuse_memory.so")},
          {"REFUSE_PROGRAM", "matrix"},
          {"REFUSE_FIRST", std::to_string(1 + drawn.seed % 150)},
          {"REFUSE_EVERY", kEvery[drawn.seed % std::size(kEvery)]}};
}

void ExpectAsBare(const Case& drawn) {
  SCOPED_TRACE("again: FAULT_CASE='" + drawn.Words() + "' " +
               BuildPath("tests/hostile_matrix_test"));
  const std::string fault = drawn.fault == "memory" ? "none" : drawn.fault;
  const Command program = {BuildPath("workloads/matrix"), drawn.phase, fault,
                           std::to_string(drawn.seed)};
  const Seen bare = Watch(program, {}, kPatienceS);
  ASSERT_TRUE(bare.ended) << "the bare program hung";
  const auto loaded_by = drawn.door == "preload" ? LoadedBy::kPreload : LoadedBy::kVariables;
  const Traced traced = Trace(program, drawn.level, loaded_by, kPatienceS, Refusing(drawn));
  EXPECT_EQ(Differences(bare, traced.seen, kAnyTime), "");
  EXPECT_EQ(traced.problems, "");
}

TEST(MatrixTest, WhateverHappensInWhateverPhaseTheProgramEndsAsBareAndTheTraceVerifies) {
  if (const char* const words = getenv("FAULT_CASE")) {
    Case given;
    std::istringstream(words) >> given.level >> given.door >> given.phase >> given.fault >>
        given.seed;
    return ExpectAsBare(given);
  }
  Random random(FaultSeed());
  const int count = FaultCount(20);
  for (int i = 0; i < count; ++i) ExpectAsBare(DrawCase(&random));
  printf("%d cases of the matrix (seed %u)\n", count, FaultSeed());
}

}  // namespace
}  // namespace ranktap::hostile_test
