// A program that works with NVTX, and to which one thing happens in one phase of its life.
// usage: matrix PHASE FAULT SEED
//   PHASE: before the first NVTX call, start (right after it), middle, end
//   FAULT: none; errno:CALL:NUMBER, a system call that fails from there on; limit:RESOURCE:VALUE;
//          a name of kFaults. SEED draws times and variants
// MATRIX_CUDA=1: it works with CUDA besides, between the phases.
// It prints what it did and never what depends on time.
#include <dlfcn.h>
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

int (*g_memset)(void*, int, size_t) = nullptr;
int (*g_synchronize)() = nullptr;
void* g_device = nullptr;

}  // namespace

void OpenCuda() {
  void* const cuda = dlopen("libcudart.so.13", RTLD_NOW);
  const auto allocate = cuda == nullptr
                            ? nullptr
                            : reinterpret_cast<int (*)(void**, size_t)>(dlsym(cuda, "cudaMalloc"));
  if (allocate == nullptr || allocate(&g_device, 4096) != 0) return Say("no CUDA", 1);
  g_memset = reinterpret_cast<int (*)(void*, int, size_t)>(dlsym(cuda, "cudaMemset"));
  g_synchronize = reinterpret_cast<int (*)()>(dlsym(cuda, "cudaDeviceSynchronize"));
}

void WorkWithCuda() {
  int failed = 0;
  if (g_memset == nullptr || g_synchronize == nullptr) return;
  for (int i = 0; i < 20; ++i) failed += g_memset(g_device, i, 4096) != 0;
  Say("CUDA calls failed", failed + (g_synchronize() != 0));
}

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
  if (getenv("MATRIX_CUDA") != nullptr) matrix::OpenCuda();
  reach("before");
  matrix::Work(1);
  matrix::WorkWithCuda();
  reach("start");
  matrix::Work(200);
  matrix::WorkWithCuda();
  usleep(120000);
  reach("middle");
  matrix::Work(200);
  matrix::WorkWithCuda();
  usleep(60000);
  reach("end");
  matrix::Say("ends", 0);
  return 20;
}
