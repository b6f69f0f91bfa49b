// A program that notices whatever a call leaves changed: errno, the modes of its floating point
// units, its signal mask, its cancellation state; on threads whose stacks have little room.
// usage: delicate CALLS   of each kind on each of 4 threads
#include <fenv.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <xmmintrin.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

namespace {

std::atomic<int> g_calls{0}, g_changed{0};
int g_count = 0;

struct State {
  unsigned sse;
  unsigned short x87;
  sigset_t mask;
  int cancel;
};

State Read() {
  State state{};
  state.sse = _mm_getcsr() & ~0x3fu;  // without the flags of what happened
  asm volatile("fnstcw %0" : "=m"(state.x87));
  sigemptyset(&state.mask);
  pthread_sigmask(SIG_SETMASK, nullptr, &state.mask);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state.cancel);
  pthread_setcancelstate(state.cancel, nullptr);
  return state;
}

template <typename Call>
void Check(Call&& call) {
  const State before = Read();
  errno = 4711;
  call();
  const int error = errno;
  const State after = Read();
  ++g_calls;
  if (error != 4711 || before.sse != after.sse || before.x87 != after.x87 ||
      before.cancel != after.cancel ||
      std::memcmp(&before.mask, &after.mask, sizeof(before.mask)) != 0) {
    ++g_changed;
  }
}

void* Work(void*) {
  fesetround(FE_UPWARD);
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &some, nullptr);
  nvtxRangePushA("first");  // a thread's first call may make what it needs
  nvtxRangePop();
  launch_kernel(nullptr);
  for (int i = 0; i < g_count; ++i) {
    Check([] { nvtxRangePushA("range"); });
    Check([] { nvtxMarkA("mark"); });
    Check([] { nvtxRangePop(); });
  }
  // The (stand-in) driver sets errno as it likes: it is called, not checked.
  for (int i = 0; i < g_count; ++i) launch_kernel(nullptr);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: delicate CALLS\n");
    return 2;
  }
  g_count = std::atoi(argv[1]);
  start_device(0);
  constexpr size_t kStack = 64 << 10;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kStack) != 0) return 1;
  std::vector<pthread_t> threads(4);
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, &attributes, Work, nullptr) != 0) return 1;
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  cudaDeviceSynchronize();
  std::printf("counts calls=%d changed=%d launches=%lu\n", g_calls.load(), g_changed.load(),
              launches_made());
  return 0;
}
