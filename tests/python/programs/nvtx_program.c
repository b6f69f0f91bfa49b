// Two threads with three NVTX ranges each; and, built as a library, the same for Python.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>

static void* Work(void* name) {
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
  return NULL;
}

__attribute__((visibility("default"))) int work(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, Work, "other") != 0) return 1;
  Work("first");
  return pthread_join(other, NULL);
}

#ifndef __PIC_LIBRARY__
int main(void) {
  puts("worked");
  return work() == 0 ? 7 : 1;
}
#endif
