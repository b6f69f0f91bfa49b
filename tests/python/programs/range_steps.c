// 20 steps as NVTX ranges, each of argv[1] microseconds and at least that long.
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** words) {
  const useconds_t us = count > 1 ? (useconds_t)atoi(words[1]) : 0;
  if (us == 0) return 1;
  for (int i = 0; i < 20; ++i) {
    nvtxRangePushA("step");
    usleep(us);
    nvtxRangePop();
  }
  return 0;
}
