// Which clock device times are of, when another client gives CUPTI a clock of its own, as PyTorch's
// profiler does: the time stamp counter, at each of its sessions.
#include <algorithm>
#include <array>
#include <string>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

enum Clock { kZero, kRealtime, kMonotonic, kTicks, kOther, kClocks };
constexpr std::array<const char*, kClocks> kNames = {"zero", "realtime", "monotonic", "tsc",
                                                     "other"};

bool Near(uint64_t time, uint64_t now) {
  constexpr uint64_t kNear = 600'000'000'000;
  return time > now - kNear && time < now + kNear;
}

Clock ClockOf(uint64_t time) {
  if (time == 0) return kZero;
  if (Near(time, RealtimeNs())) return kRealtime;
  if (Near(time, Tsc())) return kTicks;
  return Near(time, MonotonicNs()) ? kMonotonic : kOther;
}

// How many of which clock, and how many of the first are of another than the last.
void SayClocks(const std::string& key, const std::vector<KernelRecord>& kernels) {
  std::array<size_t, kClocks> counts{};
  std::vector<Clock> clocks;
  for (const KernelRecord& kernel : kernels) {
    clocks.push_back(ClockOf(kernel.start));
    ++counts[clocks.back()];
  }
  std::string json = "{\"kernels\":" + std::to_string(kernels.size());
  for (size_t clock = 0; clock < kClocks; ++clock) {
    if (counts[clock] == 0) continue;
    json += ",\"" + std::string(kNames[clock]) + "\":" + std::to_string(counts[clock]);
  }
  size_t head = 0;
  while (head < clocks.size() && clocks[head] != clocks.back()) ++head;
  SayRaw(key, json + ",\"of_another_at_first\":" + std::to_string(head) + "}");
}

void Ours(const char* key, int launches) {
  if (!Subscribe(Calls::kBoth)) return;
  Enable(Kind::kConcurrentKernel);
  Launch(launches);
  SayClocks(key, Kernels(TakeRecords(false)));
  Disable(Kind::kConcurrentKernel);
  (void)TakeRecords(true);
  Unsubscribe();
}

// A session of kinds alone, as PyTorch's: each kernel is waited for.
void Client(int session, bool registers, int launches) {
  const std::string key = "client_" + std::to_string(session);
  if (registers) Say(key + "_registers", RegisterTimestamp(&Tsc));
  Enable(Kind::kConcurrentKernel);
  for (int i = 0; i < launches; ++i) {
    Launch(1);
    cudaDeviceSynchronize();
  }
  SayClocks(key, Kernels(TakeRecords(true)));
  Disable(Kind::kConcurrentKernel);
}

void AskClock(Timestamp first, bool client_registers, Timestamp back, int launches) {
  launches = std::clamp(launches / 20, 5, 50);
  if (first != nullptr) Say("registers_at_first", RegisterTimestamp(first));
  Ours("ours", launches);
  for (int session = 1; session <= 3; ++session) Client(session, client_registers, launches);
  if (back != nullptr) Say("registers_again", RegisterTimestamp(back));
  Ours("ours_again", launches);
  Say("registers_none", RegisterTimestamp(nullptr));
}

}  // namespace

void AskClockClientLater(int launches) { AskClock(nullptr, true, nullptr, launches); }
void AskClockOnce(int launches) { AskClock(&Tsc, false, nullptr, launches); }
void AskClockEachSession(int launches) { AskClock(&Tsc, true, nullptr, launches); }
void AskClockRealtimeFirst(int launches) { AskClock(&RealtimeNs, true, &RealtimeNs, launches); }

}  // namespace ranktap::gpu
