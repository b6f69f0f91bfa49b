// Steps as NVTX ranges, each of argv[1] microseconds and at least that long; argv[2] of them,
// or 20.
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** words) {
  const useconds_t us = count > 1 ? (useconds_t)atoi(words[1]) : 0;
  const int steps = count > 2 ? atoi(words[2]) : 20;
  if (us == 0) return 1;
  for (int i = 0; i < steps; ++i) {
    nvtxRangePushA("step");
    usleep(us);
    nvtxRangePop();
  }
  return 0;
}
