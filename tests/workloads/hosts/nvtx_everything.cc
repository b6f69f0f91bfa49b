// Every entry of NVTX 3, without CUDA: core, domains, registered strings, naming, resources,
// synchronisation objects, and the payload and counter extensions.
// usage: nvtx_everything [ROUNDS]
#include "tests/workloads/hosts/nvtx_everything.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  NvtxCounts counts;
  for (int round = 0; round < rounds; ++round) {
    UseCore(counts, round);
    UseDomains(counts, round);
    UseNaming();
    UsePayloads(counts, round);
    UseCounters(counts, round);
  }
  std::printf("counts push_pop=%d start_end=%d marks=%d samples=%d enabled=%d levels_wrong=%d\n",
              counts.push_pop, counts.start_end, counts.marks, counts.samples, counts.enabled,
              counts.levels_wrong);
  return 0;
}
