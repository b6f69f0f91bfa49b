// Initialises NCCL as far as it goes without a GPU: enough for its NVTX domain, strings and payload
// schemas. Prints what NCCL answered, which is an error where there is no GPU.
// Usage: nccl_init
#include <nccl.h>
#include <stdio.h>

int main(void) {
  int version = 0;
  ncclGetVersion(&version);
  ncclUniqueId id;
  const ncclResult_t got_id = ncclGetUniqueId(&id);
  ncclComm_t comm = NULL;
  const ncclResult_t initialised = ncclCommInitRank(&comm, 1, id, 0);
  printf("nccl %d: unique id %d, init %d\n", version, got_id, initialised);
  return 0;
}
