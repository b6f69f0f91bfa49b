// {level} x {way of loading} x {phase} x {fault} x {beside}, drawn by a seed: the program ends as
// bare, and what is there verifies. FAULT_SEED and FAULT_COUNT say which cases; FAULT_CASE is one
// of them, in the words that a failure prints. tests/workloads/hosts/matrix.cc does what happens.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/fault_seed.h"
#include "tests/integration/agent/standing_collector.h"
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
// What the program has besides: CUDA (the stand-in), an allocator, a sanitizer, or a collector that
// goes away.
const char* const kBeside[] = {
    "nothing",      "cuda",    "jemalloc", "tcmalloc",         "mimalloc",
    "malloc_check", "address", "thread",   "killed_collector", "stopped_collector"};
// The bare program does not bear these: the stand-in, nor the sanitizer, which then hangs or
// reports addresses. `address` with `pthread_exit` is ours: docs/reliability.md, leak checks.
const std::pair<const char*, const char*> kUnbearable[] = {
    {"cuda", "fpu"},          {"cuda", "closed"},        {"cuda", "exhausted"},
    {"address", "exhausted"}, {"address", "noproc"},     {"address", "pthread_exit"},
    {"thread", "longjmp"},    {"thread", "pthread_exit"}};
const int kErrors[] = {EPERM,  ENOENT, EINTR,  EIO,    EBADF,  EAGAIN, ENOMEM,
                       EACCES, EINVAL, EMFILE, ENOSPC, ENOSYS, ENOTSUP};
const char* const kLimits[] = {"nofile:0",      "nofile:63",     "nofile:64",    "nofile:513",
                               "nproc:0",       "nproc:1",       "as:0",         "as:67108864",
                               "as:1073741824", "data:0",        "data:8388608", "fsize:0",
                               "fsize:4096",    "fsize:1048576", "stack:16384",  "stack:8388608"};

struct Case {
  std::string level, door, phase, fault, beside;
  uint32_t seed = 0;

  std::string Words() const {
    return level + " " + door + " " + phase + " " + fault + " " + beside + " " +
           std::to_string(seed);
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

bool Bears(const std::string& beside, const std::string& fault) {
  // Allocators answer refusals in ways of their own, with messages on stderr.
  if (fault == "memory" || fault.find(':') != fault.npos) return beside == "nothing";
  return std::ranges::none_of(
      kUnbearable, [&](const auto& pair) { return beside == pair.first && fault == pair.second; });
}

Case DrawCase(Random* random) {
  Case drawn;
  drawn.level = OneOf(kLevels, random);
  drawn.door = OneOf(kDoors, random);
  drawn.phase = OneOf(kPhases, random);
  drawn.fault = DrawFault(random);
  const std::string beside = OneOf(kBeside, random);
  drawn.beside = Bears(beside, drawn.fault) ? beside : "nothing";
  // Nothing may be preloaded before AddressSanitizer: `run` says so, on stderr.
  if (drawn.beside == "address") drawn.door = "variables";
  drawn.seed = static_cast<uint32_t>((*random)());
  return drawn;
}

Variables Having(const std::string& beside) {
  if (beside == "cuda") return {{"LD_LIBRARY_PATH", BuildPath("fakes")}, {"MATRIX_CUDA", "1"}};
  if (beside == "jemalloc") return {{"LD_PRELOAD", "libjemalloc.so.2"}};
  if (beside == "tcmalloc") return {{"LD_PRELOAD", "libtcmalloc_minimal.so.4"}};
  if (beside == "mimalloc") return {{"LD_PRELOAD", "libmimalloc.so.2.0"}};
  if (beside == "malloc_check") {
    return {{"LD_PRELOAD", "libc_malloc_debug.so.0"},
            {"MALLOC_CHECK_", "3"},
            {"MALLOC_PERTURB_", "165"}};
  }
  return {};
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

Command ProgramOf(const Case& drawn) {
  const bool sanitized = drawn.beside == "address" || drawn.beside == "thread";
  return {BuildPath("workloads/matrix") + (sanitized ? "_" + drawn.beside : ""), drawn.phase,
          drawn.fault == "memory" ? "none" : drawn.fault, std::to_string(drawn.seed)};
}

// `ranktap collect` goes away at a time that the seed draws, and one is there again after the
// program's end. Without `problems` everything that is there verifies.
Traced TraceBesideACollectorThatLeaves(const Case& drawn) {
  const agent_test::StandingCollector place;
  Variables variables = place.Joined();
  std::erase_if(variables, [&](const auto& variable) {
    return drawn.door == "variables" && variable.first == "LD_PRELOAD";
  });
  variables.emplace_back("RANKTAP_LEVEL", drawn.level);
  pid_t collector = place.StartCollector();
  EXPECT_TRUE(place.WaitUntil([&] { return place.IsServing(); }));
  const int signal = drawn.beside == "killed_collector" ? SIGKILL : SIGSTOP;
  std::thread leaving([&] {
    usleep(drawn.seed % 400'000);
    kill(collector, signal);
  });
  Traced traced;
  traced.seen = Watch(ProgramOf(drawn), variables, kPatienceS);
  leaving.join();
  if (signal == SIGKILL) {
    place.End(collector, SIGKILL);
    collector = place.StartCollector();
    EXPECT_TRUE(place.WaitUntil([&] { return place.IsServing(); }));
  } else {
    kill(collector, SIGCONT);
  }
  if (!place.WaitUntil([&] { return place.Spools().empty(); }))
    traced.problems += "a spool stays\n";
  EXPECT_EQ(place.End(collector, SIGTERM), 0);
  for (const std::string& run : place.Runs()) traced.problems += ProblemsOf(run);
  return traced;
}

Traced TraceAsDrawn(const Case& drawn) {
  if (drawn.beside.ends_with("_collector")) return TraceBesideACollectorThatLeaves(drawn);
  const auto loaded_by = drawn.door == "preload" ? LoadedBy::kPreload : LoadedBy::kVariables;
  Variables variables = Refusing(drawn);
  for (const auto& variable : Having(drawn.beside)) variables.push_back(variable);
  Traced traced = Trace(ProgramOf(drawn), drawn.level, loaded_by, kPatienceS, variables);
  if (drawn.phase != "before") return traced;
  // The line of `run` where the fault keeps the agent from being mapped.
  static const std::regex kWhyNot("ranktap: [^\n]*: the agent cannot be loaded: [^\n]*\n");
  traced.seen.errors = std::regex_replace(traced.seen.errors, kWhyNot, "");
  return traced;
}

void ExpectAsBare(const Case& drawn) {
  SCOPED_TRACE("again: FAULT_CASE='" + drawn.Words() + "' " +
               BuildPath("tests/hostile_matrix_test"));
  const Seen bare = Watch(ProgramOf(drawn), Having(drawn.beside), kPatienceS);
  ASSERT_TRUE(bare.ended) << "the bare program hung";
  const Traced traced = TraceAsDrawn(drawn);
  EXPECT_EQ(Differences(bare, traced.seen, kAnyTime), "");
  EXPECT_EQ(traced.problems, "");
}

TEST(MatrixTest, WhateverHappensInWhateverPhaseTheProgramEndsAsBareAndTheTraceVerifies) {
  if (const char* const words = getenv("FAULT_CASE")) {
    Case given;
    std::istringstream(words) >> given.level >> given.door >> given.phase >> given.fault >>
        given.beside >> given.seed;
    return ExpectAsBare(given);
  }
  Random random(FaultSeed());
  const int count = FaultCount(40);
  for (int i = 0; i < count; ++i) ExpectAsBare(DrawCase(&random));
  printf("%d cases of the matrix (seed %u)\n", count, FaultSeed());
}

}  // namespace
}  // namespace ranktap::hostile_test
