// A program with a profiler of its own, which uses CUPTI the way PyTorch's does: callbacks for
// buffers registered once, activity kinds on for a while, a flush, kinds off. Checks that it gets
// every kernel of its own window and no buffer that it did not lend.
// usage: profiles_itself LAUNCHES SESSIONS PAUSE_MS
//   each session: LAUNCHES outside, LAUNCHES profiled; a pause after each; LAUNCHES at the end
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "tests/workloads/hosts/device_work.h"

namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::mutex mutex;
std::set<uint8_t*> lent;
int strangers = 0;
int kernels = 0;

void CUPTIAPI OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  const std::lock_guard lock(mutex);
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *max_records = 0;
  lent.insert(*buffer);
}

void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(mutex);
  if (lent.erase(buffer) == 0) {
    ++strangers;
    return;
  }
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++kernels;
  }
  std::free(buffer);
}

void Launch(int count) {
  for (int i = 0; i < count; ++i) launch_kernel(nullptr);
  cudaDeviceSynchronize();
}

bool Profile(int count) {
  bool ok = cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted) == CUPTI_SUCCESS &&
            cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
            cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS;
  Launch(count);
  ok = cuptiActivityFlushAll(1) == CUPTI_SUCCESS && ok;
  ok = cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS && ok;
  ok = cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS && ok;
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: profiles_itself LAUNCHES SESSIONS PAUSE_MS\n");
    return 2;
  }
  const int launches = std::atoi(argv[1]);
  const int sessions = std::atoi(argv[2]);
  start_device(0);
  bool ok = true;
  for (int i = 0; i < sessions; ++i) {
    Launch(launches);
    ok = Profile(launches) && ok;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[3])));
  }
  Launch(launches);
  const std::lock_guard lock(mutex);
  std::printf("counts own_kernels=%d strangers=%d ok=%d\n", kernels, strangers, ok ? 1 : 0);
  return ok && strangers == 0 && kernels == launches * sessions ? 0 : 1;
}
