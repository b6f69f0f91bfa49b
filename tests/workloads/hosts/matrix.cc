// A program that works with NVTX, and to which one thing happens in one phase of its life.
// usage: matrix PHASE FAULT SEED
//   PHASE: before the first NVTX call, start (right after it), middle, end
//   FAULT: none; errno:CALL:NUMBER, a system call that fails from there on; limit:RESOURCE:VALUE;
//          a name of kFaults. SEED draws times and variants
// It prints what it did and never what depends on time.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/workloads/hosts/matrix.h"

namespace matrix {
namespace {

struct Fault {
  const char* name;
  void (*happen)();
};

const Fault kFaults[] = {
    {"none", [] {}},
    {"signals", Signals},
    {"longjmp", LongJump},
    {"cancel", Cancel},
    {"masked", BlockEverySignal},
    {"fpu", TrapEveryFloat},
    {"closed", CloseEveryDescriptor},
    {"exhausted", ExhaustDescriptors},
    {"noproc", LoseProc},
    {"fork", [] { Child("fork"); }},
    {"_Fork", [] { Child("_Fork"); }},
    {"vfork", [] { Child("vfork"); }},
    {"clone", [] { Child("clone"); }},
    {"exec", Exec},
    {"exit", [] { std::exit(21); }},
    {"_exit", [] { _exit(22); }},
    {"quick_exit", [] { std::quick_exit(23); }},
    {"abort", [] { std::abort(); }},
    {"raise", [] { EndBySignal(true); }},
    {"kill", [] { EndBySignal(false); }},
    {"pthread_exit", LeaveMain},
    {"exit_group", RawExitGroup},
    {"throw", [] { throw 1; }},
};

bool Happen(const std::string& fault) {
  if (fault.rfind("errno:", 0) == 0 || fault.rfind("limit:", 0) == 0) {
    const size_t colon = fault.find(':', 6);
    const std::string what = fault.substr(6, colon - 6);
    const unsigned long value = std::strtoul(fault.c_str() + colon + 1, nullptr, 10);
    return fault[0] == 'e' ? FailCall(what, static_cast<unsigned>(value)) : Limit(what, value);
  }
  for (const Fault& known : kFaults) {
    if (fault != known.name) continue;
    known.happen();
    return true;
  }
  return false;
}

}  // namespace

void Say(const char* what, int number) { dprintf(STDOUT_FILENO, "%s %d\n", what, number); }

}  // namespace matrix

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: matrix PHASE FAULT SEED\n");
    return 2;
  }
  matrix::g_seed = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  const auto reach = [argv](std::string_view phase) {
    if (phase == argv[1] && !matrix::Happen(argv[2])) {
      std::fprintf(stderr, "matrix: no fault %s\n", argv[2]);
      _exit(2);
    }
  };
  reach("before");
  matrix::Work(1);
  reach("start");
  matrix::Work(200);
  usleep(120000);
  reach("middle");
  matrix::Work(200);
  usleep(60000);
  reach("end");
  matrix::Say("ends", 0);
  return 20;
}
