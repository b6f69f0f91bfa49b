// The parts of nvtx_everything, and what they count.
#pragma once

struct NvtxCounts {
  int push_pop = 0;   // ranges pushed and popped
  int start_end = 0;  // ranges started and ended
  int marks = 0;
  int samples = 0;       // counter samples
  int enabled = 0;       // rounds in which a tool listened to the domain "payloads"
  int levels_wrong = 0;  // a push or pop that returned neither its level nor "no tracking"
};

void UseCore(NvtxCounts& counts, int round);
void UseDomains(NvtxCounts& counts, int round);
void UseNaming();
void UsePayloads(NvtxCounts& counts, int round);
void UseCounters(NvtxCounts& counts, int round);
