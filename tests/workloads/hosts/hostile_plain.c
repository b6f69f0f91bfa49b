// C and NVTX, for other C libraries, other processors' modes, and static linking.
// usage: hostile_plain STATUS
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  for (int i = 0; i < 1000; ++i) {
    nvtxRangePushA("plain");
    nvtxRangePop();
  }
  printf("%zu bits\n", 8 * sizeof(void*));
  return argc > 1 ? atoi(argv[1]) : 0;
}
