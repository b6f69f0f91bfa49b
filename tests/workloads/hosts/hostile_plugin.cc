// What hostile.cc loads into namespaces of its own.
#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) int plugin_work() {
  for (int i = 0; i < 10; ++i) {
    nvtxRangePushA("in a namespace");
    nvtxRangePop();
  }
  return 3;
}
