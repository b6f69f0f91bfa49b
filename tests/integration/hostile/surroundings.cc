#include "tests/integration/hostile/surroundings.h"

#include <stdlib.h>

#include <string>

#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

using standin_test::BuildPath;

// `script` runs "$@", which is the command.
Command Shell(const std::string& script, const Command& command) {
  Command whole = {"/bin/sh", "-c", script, "sh"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

Command Preloaded(const std::string& library, const Command& command) {
  return Shell(
      "LD_PRELOAD=" + BuildPath("workloads/" + library) + "${LD_PRELOAD:+:$LD_PRELOAD} exec \"$@\"",
      command);
}

}  // namespace

Command InAnotherPidNamespace(const Command& command) {
  return Shell(
      "unshare --pid --fork true || exit 77\n"
      "exec unshare --pid --fork \"$@\"",
      command);
}

Command InACgroupOfVersion2(const Command& command) {
  return Shell(
      "place=$(sed -n 's/^cgroup2 \\([^ ]*\\) .*/\\1/p' /proc/mounts | head -n 1)\n"
      "[ -n \"$place\" ] || { echo 'no cgroup v2 is mounted' >&2; exit 77; }\n"
      "mkdir \"$place/hostile-$$\" || exit 77\n"
      "echo 64M 2>/dev/null > \"$place/hostile-$$/memory.max\"\n"
      "(echo 0 > \"$place/hostile-$$/cgroup.procs\" && exec \"$@\") 2>&1\n"
      "status=$?\n"
      "until rmdir \"$place/hostile-$$\" 2>/dev/null; do sleep 0.1; done\n"
      "exit $status",
      command);
}

Command WithSteppingClock(const Command& command) { return Preloaded("clock_steps.so", command); }

Command WithNvtxAtStart(const Command& command) { return Preloaded("nvtx_at_start.so", command); }

Command UnderValgrind(const Command& command) {
  return Shell(
      "command -v valgrind > /dev/null || { echo no valgrind: scripts/setup >&2; exit 77; }\n"
      "exec valgrind -q --leak-check=full --error-exitcode=9 \"$@\"",
      command);
}

Command Stopped(const Command& command, int seconds) {
  return Shell(
      "\"$@\" & program=$!\n"
      "sleep 0.2; kill -STOP $program 2>/dev/null; sleep " +
          std::to_string(seconds) +
          "; kill -CONT $program 2>/dev/null\n"
          "wait $program",
      command);
}

Command WithoutAFileThatWorks(const Command& command) {
  Command whole = {BuildPath("workloads/confined"),
                   "eio=ftruncate",
                   "eio=fallocate",
                   "eio=pwrite",
                   "eio=writev",
                   "eio=fdatasync",
                   "--"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

Command PyTorch(const Command& program) {
  const char* const cache = getenv("RANKTAP_CACHE");
  const char* const home = getenv("HOME");
  const std::string place =
      cache != nullptr ? cache : std::string(home == nullptr ? "" : home) + "/.cache/ranktap";
  Command whole = program;
  whole[0] = std::string(RANKTAP_SOURCE_DIR) + "/tests/python/programs/" + program[0];
  return Shell(
      "python=" + place +
          "/torch-venv/bin/python\n"
          "[ -x \"$python\" ] || { echo no PyTorch: scripts/setup --torch >&2; exit 77; }\n"
          "exec \"$python\" -W ignore \"$@\"",
      whole);
}

}  // namespace ranktap::hostile_test
