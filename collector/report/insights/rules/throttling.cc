// Power or temperature keep a device from its clock.
#include "collector/report/device/throttling.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/trace/device_counters.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastOfSamples = 0.05;
constexpr int64_t kLeastClockSamples = 3;  // one a second

struct Sample {
  uint64_t reasons = 0;
  double mhz = 0, watts = 0, celsius = 0;
};
using Samples = std::map<uint32_t, std::map<int64_t, Sample>>;  // by device and time

void Put(DeviceCounter counter, double value, Sample* sample) {
  if (counter == DeviceCounter::kSmClock) sample->mhz = value;
  if (counter == DeviceCounter::kPower) sample->watts = value;
  if (counter == DeviceCounter::kTemperature) sample->celsius = value;
  if (counter == DeviceCounter::kThrottleReasons) {
    sample->reasons = ThrottlingOf(static_cast<uint64_t>(value));
  }
}

Samples Collect(const RankFacts& rank) {
  Samples samples;
  const CounterSamples& counters = rank.trace().counters;
  for (size_t i = 0; i < counters.size(); ++i) {
    const auto known =
        std::ranges::find(kDeviceCounters, rank.trace().dictionary.String(counters.name[i]));
    const bool is_counted = counters.device[i] != kNone && rank.IsCounted(counters.start[i]);
    if (known == kDeviceCounters.end() || !is_counted) continue;
    Put(static_cast<DeviceCounter>(known - kDeviceCounters.begin()), counters.value[i],
        &samples[counters.device[i]][counters.start[i]]);
  }
  return samples;
}

struct Throttled {
  uint64_t reasons = 0;
  int64_t samples = 0, throttled = 0;
  double most_mhz = 0, lost_mhz = 0, most_watts = 0, most_celsius = 0;
};

Throttled Count(const std::map<int64_t, Sample>& samples) {
  Throttled sum;
  for (const auto& [time, sample] : samples) {
    ++sum.samples;
    sum.most_mhz = std::max(sum.most_mhz, sample.mhz);
    sum.most_watts = std::max(sum.most_watts, sample.watts);
    sum.most_celsius = std::max(sum.most_celsius, sample.celsius);
    sum.reasons |= sample.reasons;
    sum.throttled += sample.reasons != 0 ? 1 : 0;
  }
  for (const auto& [time, sample] : samples) {
    if (sample.reasons != 0) sum.lost_mhz += sum.most_mhz - sample.mhz;
  }
  return sum;
}

Insight About(const RankFacts& rank, uint32_t device, const Throttled& sum) {
  const auto samples = static_cast<double>(sum.samples);
  // Kernels that wait for memory lose less than the clock does.
  const double share = sum.most_mhz == 0 ? 0 : sum.lost_mhz / samples / sum.most_mhz;
  const int64_t compute = rank.waterfall().mean[static_cast<size_t>(Cause::kCompute)];
  return {.device = device,
          .finding = fmt::format(
              "Device {} is throttled in {} of {} samples ({}): its clock loses {} against the "
              "{:.0f} MHz it reaches, at up to {:.0f} W and {:.0f} degrees Celsius.",
              device, sum.throttled, sum.samples, NamesOfThrottling(sum.reasons),
              FormatPercent(100 * share), sum.most_mhz, sum.most_watts, sum.most_celsius),
          .count = sum.throttled,
          .lost_ns = static_cast<int64_t>(share * static_cast<double>(compute)),
          .saving =
              Saving{.moments = rank.counted(), .causes = BitOf(Cause::kCompute), .share = share}};
}

}  // namespace

Answer FindThrottling(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  const Samples samples = Collect(rank);
  Answer answer;
  bool is_told = false;
  for (const auto& [device, of_device] : samples) {
    const Throttled sum = Count(of_device);
    if (sum.samples < kLeastClockSamples) continue;
    is_told = true;
    const double share = static_cast<double>(sum.throttled) / static_cast<double>(sum.samples);
    if (share >= kLeastOfSamples) answer.insights.push_back(About(rank, device, sum));
  }
  return is_told ? answer : CannotTell("no clocks of devices are recorded");
}

}  // namespace ranktap::collector
