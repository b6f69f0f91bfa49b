#include "collector/facts/roofline/roofs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "collector/trace/device_counters.h"

namespace ranktap::collector {
namespace {

constexpr double kNsPerSecond = 1e9;
// A kernel is never done in less than 2 us or so, whatever it does: launch, first wave, drain.
constexpr double kShortestNs = 2000;
constexpr double kFarFromRoof = 2;  // times its least
// Clocks and timestamps are known to some percent.
constexpr double kAbove = 1.02;

double MeanClock(const Trace& trace, uint32_t device) {
  const CounterSamples& counters = trace.counters;
  double sum = 0, samples = 0;
  for (size_t i = 0; i < counters.size(); ++i) {
    if (counters.device[i] != device || counters.value[i] <= 0) continue;
    if (trace.dictionary.String(counters.name[i]) !=
        kDeviceCounters[static_cast<size_t>(DeviceCounter::kSmClock)]) {
      continue;
    }
    sum += counters.value[i];
    ++samples;
  }
  return samples == 0 ? 0 : sum / samples;
}

Roofs Recorded(const Trace& trace, uint32_t number) {
  Roofs roofs;
  for (const v1::Device& device : trace.hello.devices()) {
    if (device.id() != number) continue;
    roofs.name = device.name();
    roofs.device = FindDevicePeaks(device.name(), device.total_global_mem());
    roofs.own_bandwidth = static_cast<double>(device.memory_bandwidth()) * 1e3;
  }
  roofs.measured_mhz = MeanClock(trace, number);
  return roofs;
}

void Ask(const RoofQuestion& question, Roofs* roofs) {
  roofs->given_flops = question.peak_flops;
  roofs->given_bandwidth = question.peak_bandwidth;
  if (const DevicePeaks* const asked = FindDevicePeaks(question.device)) {
    roofs->is_where_it_ran = roofs->device == nullptr || roofs->device == asked;
    if (!roofs->is_where_it_ran) roofs->measured_mhz = 0;
    roofs->device = asked;
  }
  if (roofs->device != nullptr) roofs->name = roofs->device->name;
}

using KnownDevices = std::shared_ptr<const std::vector<DeviceRoofs>>;

// What a person asks for wins.
void TakeCalibrated(const Trace& trace, uint32_t number, const RoofQuestion& question,
                    Roofs* roofs) {
  const KnownDevices known = trace.memo.Get<KnownDevices>([] { return KnownDevices(); });
  if (!question.device.empty() || known == nullptr) return;
  for (const v1::Device& device : trace.hello.devices()) {
    if (device.id() != number) continue;
    const auto found =
        std::ranges::find_if(*known, [&](const DeviceRoofs& of) { return IsOfDevice(of, device); });
    if (found == known->end()) return;
    roofs->calibrated = CalibratedPeaksOf(*found, roofs->device);
    roofs->device = &roofs->calibrated->peaks;
    return;
  }
}

using KnownHost = std::shared_ptr<const HostRoofs>;

// --device asks what another would need.
void AskHost(const Trace& trace, const RoofQuestion& question, Roofs* roofs) {
  const KnownHost host = trace.memo.Get<KnownHost>([] { return KnownHost(); });
  if (!question.device.empty() || host == nullptr) return;
  roofs->measured = std::make_shared<const DevicePeaks>(host->Peaks());
  roofs->device = roofs->measured.get();
  roofs->host = host;
  roofs->name = host->processor;
  if (host->cores > 1) roofs->name += ", " + std::to_string(host->cores) + " cores";
}

double NsAt(double amount, double per_second) {
  return per_second > 0 ? amount / per_second * kNsPerSecond : 0;
}

// Whether a roof is known for all that is counted.
bool IsCounted(const RooflinePoint& point, const Roofs& roofs) {
  if (point.kind != PointKind::kCounted) return false;
  if (point.flops > 0 && roofs.Flops(point.unit) <= 0) return false;
  if (!point.bytes.is_counted() || point.bytes.total() == 0) return point.flops > 0;
  return roofs.Bandwidth() > 0;
}

int64_t TimeOf(const RooflinePoint& point, const Roofs& roofs) {
  return roofs.measured == nullptr ? point.time_ns : point.host_ns;
}

RoofBound BoundOf(const RooflinePoint& point, const Roofs& roofs, const RoofJudgement& of,
                  bool is_timed) {
  if (point.kind == PointKind::kTransfer) return RoofBound::kTransfer;
  if (point.kind == PointKind::kCommunication) return RoofBound::kCommunication;
  if (!of.is_counted || of.least_ns <= 0 || !point.bytes.is_counted()) return RoofBound::kUnknown;
  const bool is_memory = of.memory_ns >= of.compute_ns;
  const auto time = static_cast<double>(TimeOf(point, roofs));
  if (is_timed && is_memory && of.is_above) {
    const double l2 = roofs.device == nullptr ? 0 : roofs.device->l2_mib * 1024 * 1024;
    return static_cast<double>(point.bytes.total()) <= l2 ? RoofBound::kL2 : RoofBound::kMemory;
  }
  const auto kernels = static_cast<double>(std::max<int64_t>(1, point.kernels));
  if (is_timed && of.least_ns < kShortestNs * kernels && time > kFarFromRoof * of.least_ns) {
    return RoofBound::kLatency;
  }
  if (!is_memory) return RoofBound::kCompute;
  return roofs.BandwidthFor(point.bytes.total()) > roofs.Bandwidth() ? RoofBound::kL2
                                                                     : RoofBound::kMemory;
}

}  // namespace

std::string_view NameOf(RoofBound bound) {
  constexpr std::array<std::string_view, kRoofBounds> kNames = {
      "unknown", "compute", "HBM", "L2", "latency", "transfer", "communication", "extra"};
  return kNames[static_cast<size_t>(bound)];
}

std::optional<std::string> WrongWith(const RoofQuestion& question) {
  if (question.device.empty()) return std::nullopt;
  const Result<const DevicePeaks*> found = DevicePeaksNamed(question.device);
  return found ? std::nullopt : std::optional(found.message());
}

ComputeUnit Roofs::UnitThere(ComputeUnit unit) const {
  if (device == nullptr || device->flops(unit) > 0) return unit;
  switch (unit) {
    case ComputeUnit::kTf32:
      return ComputeUnit::kFp32;
    case ComputeUnit::kFp64Tensor:
      return ComputeUnit::kFp64;
    case ComputeUnit::kHalfTensor:
      return device->flops(ComputeUnit::kHalf) > device->flops(ComputeUnit::kFp32)
                 ? ComputeUnit::kHalf
                 : ComputeUnit::kFp32;
    default:
      return unit;
  }
}

double Roofs::Flops(const MathUnit& unit) const {
  if (given_flops > 0) return given_flops;
  if (device == nullptr || unit.known == UnitKnown::kNone) return 0;
  return device->flops(UnitThere(unit.unit));
}

double Roofs::FlopsAt(const MathUnit& unit, double mhz) const {
  if (given_flops > 0 || device == nullptr || unit.known == UnitKnown::kNone) return 0;
  return device->FlopsAt(UnitThere(unit.unit), mhz);
}

double Roofs::Bandwidth() const {
  if (given_bandwidth > 0) return given_bandwidth;
  return device != nullptr && device->bandwidth() > 0 ? device->bandwidth() : own_bandwidth;
}

double Roofs::BandwidthFor(int64_t moved) const {
  const bool is_host = host != nullptr && measured != nullptr && given_bandwidth <= 0;
  return is_host ? std::max(host->BandwidthFor(moved), Bandwidth()) : Bandwidth();
}

void KnowDevices(std::shared_ptr<const std::vector<DeviceRoofs>> roofs, const Trace& trace) {
  trace.memo.Get<KnownDevices>([&roofs] { return std::move(roofs); });
}

std::string UuidOf(const v1::Device& device) {
  const std::string& bytes = device.uuid();
  if (bytes.find_first_not_of('\0') == std::string::npos) return {};
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

bool IsOfDevice(const DeviceRoofs& roofs, const v1::Device& device) {
  const std::string uuid = UuidOf(device);
  return roofs.name == device.name() && (uuid.empty() || roofs.uuid == uuid);
}

void KnowHost(std::shared_ptr<const HostRoofs> roofs, const Trace& trace) {
  trace.memo.Get<KnownHost>([&roofs] { return std::move(roofs); });
}

RoofsOfTrace::RoofsOfTrace(const Trace& trace, const RoofQuestion& question) {
  std::set<uint32_t> used;
  for (const Lane& lane : trace.lanes) used.insert(lane.device);
  for (const uint32_t device : used) {
    by_device_.emplace_back(device, Recorded(trace, device));
    Ask(question, &by_device_.back().second);
    TakeCalibrated(trace, device, question, &by_device_.back().second);
  }
  Ask(question, &otherwise_);
  if (used.empty()) AskHost(trace, question, &otherwise_);
}

const Roofs& RoofsOfTrace::Of(uint32_t device) const {
  for (const auto& [known, roofs] : by_device_) {
    if (known == device) return roofs;
  }
  return otherwise_;
}

RoofJudgement JudgePoint(const RooflinePoint& point, const Roofs& roofs, bool has_device_work) {
  RoofJudgement of;
  // Work of the host beside a device has no roof there.
  const bool is_elsewhere = has_device_work && point.works == 0;
  of.is_counted = !is_elsewhere && IsCounted(point, roofs);
  const bool is_on_host = !has_device_work && roofs.measured != nullptr && point.host_ns > 0;
  const bool is_timed = is_on_host || (has_device_work && point.works > 0 && roofs.is_where_it_ran);
  of.is_timed = is_timed;
  if (of.is_counted) {
    of.roof_flops = point.flops > 0 ? roofs.Flops(point.unit) : 0;
    const auto flops = static_cast<double>(point.flops);
    of.compute_ns = NsAt(flops, of.roof_flops);
    if (point.bytes.is_counted()) {
      of.memory_ns =
          NsAt(static_cast<double>(point.bytes.total()), roofs.BandwidthFor(point.bytes.total()));
    }
    of.least_ns = std::max(of.compute_ns, of.memory_ns);
    const auto least_at = [&](double mhz) {
      if (point.flops == 0) return of.memory_ns;
      const double at = mhz > 0 ? roofs.FlopsAt(point.unit, mhz) : 0;
      return at > 0 ? std::max(NsAt(flops, at), of.memory_ns) : 0;
    };
    // What was measured was at the clock that it had.
    if (roofs.measured == nullptr && roofs.calibrated == nullptr) {
      of.least_at_base = roofs.device == nullptr ? 0 : least_at(roofs.device->base_mhz);
      of.least_at_measured = least_at(roofs.measured_mhz);
    }
    const auto time = static_cast<double>(TimeOf(point, roofs));
    of.is_above = is_timed && of.least_ns > kAbove * time;
    // Kernels beside those that compute stay (a bias, layouts). Where bytes are not known memory
    // may bound it.
    if (is_timed && point.bytes.is_counted()) {
      of.saved_ns = std::max(0.0, static_cast<double>(point.computing_ns) - of.least_ns);
    }
  }
  of.bound = BoundOf(point, roofs, of, is_timed);
  return of;
}

}  // namespace ranktap::collector
