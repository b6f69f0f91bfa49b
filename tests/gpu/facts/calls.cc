// The cost of callbacks and their content, bytes that CUPTI leaves in a buffer, its settings.
#include <algorithm>
#include <string>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

// The best of five; the wait for the device is not in it.
void SayCost(const char* key, int launches) {
  uint64_t best = ~uint64_t{0};
  for (int round = 0; round < 5; ++round) {
    const uint64_t begin = MonotonicNs();
    Launch(launches);
    best = std::min(best, MonotonicNs() - begin);
    cudaDeviceSynchronize();
  }
  Say(key, static_cast<int64_t>(best) / launches);
}

void SayCostWith(const char* key, Calls calls, int launches) {
  if (!Subscribe(calls)) return;
  SayCost(key, launches);
  Unsubscribe();
}

void SetZeroed(uint8_t on) {
  size_t bytes = sizeof(on);
  Say(on != 0 ? "set_zeroed" : "set_not_zeroed",
      Cupti().api.ActivitySetAttribute(kAttributeZeroedOutBuffer, &bytes, &on));
}

void SayZeroed(const char* key) {
  uint8_t value = 0;
  size_t bytes = sizeof(value);
  const Result result = Cupti().api.ActivityGetAttribute(kAttributeZeroedOutBuffer, &bytes, &value);
  Say(key, result == kSuccess ? value : -result);
}

// Offsets that hold the fill in every record of the kind: one alone may be content.
void SayLeft(const char* key, const std::vector<Copy>& records, Kind kind, uint8_t fill) {
  std::vector<bool> left;
  size_t count = 0;
  for (const Copy& copy : records) {
    if (copy.record().kind != kind) continue;
    if (count++ == 0) left.assign(copy.bytes.size(), true);
    for (size_t i = 0; i < std::min(left.size(), copy.bytes.size()); ++i) {
      if (copy.bytes[i] != fill) left[i] = false;
    }
  }
  std::string offsets;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i]) offsets += (offsets.empty() ? "" : " ") + std::to_string(i);
  }
  Say(std::string(key) + "_records", static_cast<int64_t>(count));
  Say(std::string(key) + "_left_at", offsets);
}

}  // namespace

void AskCost(int launches) {
  SayCost("bare_ns", launches);
  SayCostWith("subscribed_ns", Calls::kNone, launches);
  SayCostWith("runtime_ns", Calls::kRuntime, launches);
  SayCostWith("driver_ns", Calls::kDriver, launches);
  SayCostWith("both_ns", Calls::kBoth, launches);
  if (!Subscribe(Calls::kNone)) return;
  Enable(Kind::kConcurrentKernel);
  SayCost("kernels_ns", launches);
  Unsubscribe();
  SayCostWith("runtime_and_kernels_ns", Calls::kRuntime, launches);
  SayCostWith("driver_and_kernels_ns", Calls::kDriver, launches);
  SayCostWith("both_and_kernels_ns", Calls::kBoth, launches);
  const uint64_t begin = MonotonicNs();
  Say("records", static_cast<int64_t>(TakeRecords(false).size()));
  Say("flush_us", static_cast<int64_t>(MonotonicNs() - begin) / 1000);
}

void AskCorrelation(int launches) {
  Seen seen;
  Watch(&seen);
  if (!Subscribe(Calls::kBoth)) return;
  Enable(Kind::kConcurrentKernel);
  Launch(launches);
  const std::vector<KernelRecord> kernels = Kernels(TakeRecords(false));
  int64_t unjoined = 0, early = 0, least = INT64_MAX;
  for (const KernelRecord& kernel : kernels) {
    const auto call = seen.outermost.find(kernel.correlation);
    if (call == seen.outermost.end()) {
      ++unjoined;
      continue;
    }
    const auto delay = static_cast<int64_t>(kernel.start - call->second.realtime_ns);
    early += delay < 0 ? 1 : 0;
    least = std::min(least, delay);
  }
  Say("kernels", static_cast<int64_t>(kernels.size()));
  Say("unjoined", unjoined);
  Say("early", early);
  Say("least_start_minus_launch_ns", least);
  Say("callbacks", static_cast<int64_t>(seen.calls));
  Say("nested_driver", static_cast<int64_t>(seen.nested_driver));
  Say("without_id", static_cast<int64_t>(seen.without_id));
  Say("without_symbol", static_cast<int64_t>(seen.without_symbol));
  Say("dirty_data_runtime", static_cast<int64_t>(seen.dirty_runtime));
  Say("dirty_data_driver", static_cast<int64_t>(seen.dirty_driver));
  Say("changed_data", static_cast<int64_t>(seen.changed));
}

void AskLeftBytes(int launches) {
  constexpr uint8_t kFill = 0xA5;
  FillBuffersWith(kFill);
  SayZeroed("zeroed_at_first");
  if (!Subscribe(Calls::kNone)) return;
  SetZeroed(1);
  for (const Kind kind :
       {Kind::kConcurrentKernel, Kind::kMemcpy, Kind::kMemset, Kind::kSynchronization}) {
    Enable(kind);
  }
  void* memory = nullptr;
  char host[64] = {};
  cudaMalloc(&memory, sizeof(host));
  for (int i = 0; i < std::min(launches, 50); ++i) {
    Launch(1);
    cudaMemcpy(memory, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaMemset(memory, 0, sizeof(host));
  }
  const std::vector<Copy> records = TakeRecords(true);
  SayLeft("kernel", records, Kind::kConcurrentKernel, kFill);
  SayLeft("memcpy", records, Kind::kMemcpy, kFill);
  SayLeft("memset", records, Kind::kMemset, kFill);
  SayLeft("synchronization", records, Kind::kSynchronization, kFill);
  Unsubscribe();
  SayZeroed("zeroed_after_unsubscribe");
  SetZeroed(0);
}

void AskSettings(int) {
  for (int attribute = 0; attribute < 14; ++attribute) {
    uint64_t value = 0;
    size_t bytes = sizeof(value);
    const Result result = Cupti().api.ActivityGetAttribute(attribute, &bytes, &value);
    const std::string key = "attribute_" + std::to_string(attribute);
    if (result != kSuccess) {
      Say(key, "error " + std::to_string(result));
    } else {
      Say(key, static_cast<int64_t>(value));
    }
  }
}

}  // namespace ranktap::gpu
