#include "collector/calibrate/calibrate_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "collector/calibrate/cuda_driver.h"
#include "collector/calibrate/device_kernels.h"
#include "collector/calibrate/samples.h"
#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

constexpr double kDeviceSampleMs = 50;
constexpr uint64_t kMostRounds = uint64_t{1} << 40;  // a kernel that takes no time ends the search
constexpr uint64_t kHostBytes = 64 << 20;
constexpr int kLaunches = 200;  // far fewer than a stream holds before a launch waits

// <cuda.h>'s numbers of attributes.
constexpr int kClockRate = 13, kMultiprocessors = 16, kMemoryClockRate = 36, kL2Bytes = 38,
              kMajor = 75, kMinor = 76;

class DeviceMeasurement {
 public:
  DeviceMeasurement(CudaDriver* driver, int number) : cuda_(*driver), number_(number) {}
  DeviceMeasurement(const DeviceMeasurement&) = delete;
  DeviceMeasurement& operator=(const DeviceMeasurement&) = delete;
  ~DeviceMeasurement() { GiveBack(); }

  // False: a call failed, or nothing is built for the device.
  bool Run(int devices) {
    if (!Describe() || code_ == nullptr || !Open()) return false;
    for (const DeviceKernel& kernel : code_->kernels) MeasureArithmetic(kernel);
    MeasureCopies();
    MeasureHostCopies();
    MeasureLaunches();
    if (devices > 1) MeasurePeer((number_ + 1) % devices);
    return cuda_.failure().empty();
  }
  const DeviceRoofs& roofs() const { return roofs_; }

 private:
  int Attribute(int which) {
    int value = 0;
    return cuda_.cuDeviceGetAttribute(&value, which, device_) ? value : 0;
  }

  bool Describe() {
    char name[256] = "";
    std::array<unsigned char, 16> uuid{};
    size_t memory = 0;
    int version = 0;
    cuda_.cuDeviceGet(&device_, number_);
    cuda_.cuDeviceGetName(name, static_cast<int>(sizeof(name)), device_);
    cuda_.cuDeviceGetUuid_v2(static_cast<void*>(uuid.data()), device_);
    cuda_.cuDeviceTotalMem_v2(&memory, device_);
    cuda_.cuDriverGetVersion(&version);
    const int major = Attribute(kMajor), minor = Attribute(kMinor);
    roofs_.host = HostName();
    roofs_.date = Today();
    roofs_.name = name;
    for (const unsigned char byte : uuid) roofs_.uuid += fmt::format("{:02x}", byte);
    roofs_.number = number_;
    roofs_.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
    if (auto text = ReadRegularFile("/sys/module/nvidia/version", 64)) {
      while (!text->empty() && text->back() <= ' ') text->pop_back();
      roofs_.driver += ", " + *text;
    }
    roofs_.architecture = fmt::format("{}.{}", major, minor);
    roofs_.sms = Attribute(kMultiprocessors);
    roofs_.mhz = Attribute(kClockRate) / 1e3;
    roofs_.memory_mhz = Attribute(kMemoryClockRate) / 1e3;
    roofs_.memory_bytes = static_cast<int64_t>(memory);
    roofs_.l2_bytes = Attribute(kL2Bytes);
    roofs_.is_stand_in = cuda_.is_stand_in();
    code_ = DeviceCodeFor(major, minor);
    return cuda_.failure().empty();
  }

  bool Open() {
    cuda_.cuDevicePrimaryCtxRetain(&context_, device_);
    cuda_.cuCtxSetCurrent(context_);
    image_ = code_->image;  // where an ELF file may begin
    cuda_.cuModuleLoadData(&module_, static_cast<const void*>(image_.data()));
    cuda_.cuStreamCreate(&stream_, 0U);
    cuda_.cuEventCreate(&begin_, 0U);
    return cuda_.cuEventCreate(&end_, 0U) && Allocate(256, &cycles_);
  }

  bool Allocate(uint64_t bytes, CudaAddress* at) {
    if (!cuda_.cuMemAlloc_v2(at, static_cast<size_t>(bytes))) return false;
    allocated_.push_back(*at);
    return cuda_.cuMemsetD8_v2(*at, static_cast<unsigned char>(0x5a), static_cast<size_t>(bytes));
  }

  // As many blocks of the kernel as the device holds at once.
  bool Find(const char* name, CudaHandle* function, unsigned* blocks) {
    int a_multiprocessor = 0;
    if (!cuda_.cuModuleGetFunction(function, module_, name) ||
        !cuda_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&a_multiprocessor, *function,
                                                           kDeviceThreads, size_t{0})) {
      return false;
    }
    *blocks = static_cast<unsigned>(std::max(1, a_multiprocessor) * std::max(1, roofs_.sms));
    return true;
  }

  bool Launch(CudaHandle function, unsigned blocks, unsigned threads, void** arguments) {
    return cuda_.cuLaunchKernel(function, blocks, 1U, 1U, threads, 1U, 1U, 0U, stream_, arguments,
                                static_cast<void**>(nullptr));
  }

  // Milliseconds of the device between two events.
  double Time(const std::function<bool()>& work) {
    float ms = 0;
    cuda_.cuEventRecord(begin_, stream_);
    work();
    cuda_.cuEventRecord(end_, stream_);
    cuda_.cuEventSynchronize(end_);
    cuda_.cuEventElapsedTime(&ms, begin_, end_);
    return static_cast<double>(ms);
  }

  // `work` does so many rounds in one kernel, or one after the other.
  MeasuredRate Rate(double amount_a_round, uint64_t most_rounds,
                    const std::function<bool(uint64_t)>& work) {
    uint64_t rounds = 1;
    const auto run = [&] { return Time([&] { return work(rounds); }); };
    double ms = run();
    // This warms up the clock, too. The time of a kernel that computes nothing says nothing.
    while (!roofs_.is_stand_in && ms < kDeviceSampleMs && rounds < most_rounds &&
           cuda_.failure().empty()) {
      const double more = ms > 0 ? std::clamp(1.2 * kDeviceSampleMs / ms, 1.1, 10.0) : 10;
      rounds = std::min(most_rounds, static_cast<uint64_t>(static_cast<double>(rounds) * more) + 1);
      ms = run();
    }
    std::vector<double> rates;
    for (int sample = 0; sample < kCalibrationSamples; ++sample) {
      last_ms_ = run();
      if (last_ms_ > 0)
        rates.push_back(amount_a_round * static_cast<double>(rounds) / last_ms_ * 1e3);
    }
    return Figure(std::move(rates));
  }

  MeasuredRate Figure(std::vector<double> samples) const {
    const bool is_whole = samples.size() == static_cast<size_t>(kCalibrationSamples);
    return roofs_.is_stand_in || !is_whole ? MeasuredRate{} : MedianOf(std::move(samples));
  }

  void MeasureArithmetic(const DeviceKernel& kernel) {
    CudaHandle function = nullptr;
    unsigned blocks = 0;
    if (!Find(kernel.name, &function, &blocks)) return;
    CudaAddress cycles = cycles_, sink = cycles_ + sizeof(uint64_t);
    const MeasuredRate rate =
        Rate(kernel.flops_a_block * blocks, kMostRounds, [&](uint64_t rounds) {
          void* arguments[] = {&rounds, &cycles, &sink};
          return Launch(function, blocks, kDeviceThreads, arguments);
        });
    uint64_t took = 0;
    cuda_.cuMemcpyDtoH_v2(static_cast<void*>(&took), cycles_, sizeof(took));
    const bool has_clock = !roofs_.is_stand_in && last_ms_ > 0;
    roofs_.arithmetic.push_back({std::string(kernel.type), std::string(kernel.instruction), rate,
                                 has_clock ? static_cast<double>(took) / last_ms_ / 1e3 : 0,
                                 kernel.is_lower_bound});
  }

  // One array is read, one is written: both fit, with room for what else is in the cache, or do
  // not.
  void MeasureCopies() {
    constexpr uint64_t kLeast = 128 << 20, kMost = 1 << 30, kUnit = 64 << 10;
    const auto l2 = static_cast<uint64_t>(roofs_.l2_bytes);
    const uint64_t within = l2 / 8 / kUnit * kUnit,
                   beyond = std::clamp(16 * l2, kLeast, kMost) / kUnit * kUnit;
    CudaHandle function = nullptr;
    unsigned blocks = 0;
    if (!Find(kCopyKernel, &function, &blocks) || !Allocate(beyond, &to_) ||
        !Allocate(beyond, &from_)) {
      return;
    }
    const auto measure = [&](const char* what, uint64_t bytes) {
      if (bytes == 0) return;
      CudaAddress to = to_, from = from_;
      uint64_t count = bytes / 16;
      const MeasuredRate rate =
          Rate(2.0 * static_cast<double>(bytes), kMostRounds, [&](uint64_t rounds) {
            void* arguments[] = {&rounds, &to, &from, &count};
            return Launch(function, blocks, kDeviceThreads, arguments);
          });
      roofs_.bandwidths.push_back({what, static_cast<int64_t>(2 * bytes), rate});
    };
    measure("L2", within);
    measure("memory, copied", beyond);
    MeasureReads(beyond);
  }

  void MeasureReads(uint64_t bytes) {
    CudaHandle function = nullptr;
    unsigned unused = 0;
    if (!Find(kReadKernel, &function, &unused)) return;
    CudaAddress from = from_, sink = cycles_;
    uint64_t count = bytes / 16;
    const auto blocks = static_cast<unsigned>((bytes + kReadBytesOfBlock - 1) / kReadBytesOfBlock);
    constexpr uint64_t kMostReads = 10'000;
    const MeasuredRate rate = Rate(static_cast<double>(bytes), kMostReads, [&](uint64_t rounds) {
      void* arguments[] = {&from, &sink, &count};
      while (rounds-- > 0) {
        if (!Launch(function, blocks, kDeviceThreads, arguments)) return false;
      }
      return true;
    });
    roofs_.bandwidths.push_back({"memory", static_cast<int64_t>(bytes), rate});
  }

  // Pinned memory of the host, and the device's; `to_` is large enough.
  void MeasureHostCopies() {
    if (!cuda_.cuMemHostAlloc(&pinned_, static_cast<size_t>(kHostBytes), 0U)) return;
    std::fill_n(static_cast<char*>(pinned_), kHostBytes, 'r');
    AddCopies("host to device", [this] {
      return cuda_.cuMemcpyHtoDAsync_v2(to_, static_cast<const void*>(pinned_),
                                        static_cast<size_t>(kHostBytes), stream_);
    });
    AddCopies("device to host", [this] {
      return cuda_.cuMemcpyDtoHAsync_v2(pinned_, to_, static_cast<size_t>(kHostBytes), stream_);
    });
  }

  void AddCopies(std::string what, const std::function<bool()>& copy) {
    constexpr uint64_t kMostCopies = 500;
    const MeasuredRate rate =
        Rate(static_cast<double>(kHostBytes), kMostCopies, [&](uint64_t rounds) {
          while (rounds-- > 0 && copy()) continue;
          return true;
        });
    roofs_.bandwidths.push_back({std::move(what), int64_t{kHostBytes}, rate});
  }

  void MeasureLaunches() {
    CudaHandle function = nullptr;
    unsigned blocks = 0;
    if (!Find(kEmptyKernel, &function, &blocks)) return;
    const auto add = [&](const char* what, bool waits_each) {
      std::vector<double> samples;
      for (int sample = 0; sample <= kCalibrationSamples; ++sample) {
        cuda_.cuStreamSynchronize(stream_);
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kLaunches; ++i) {
          if (!Launch(function, 1, 32, nullptr)) return;
          if (waits_each) cuda_.cuStreamSynchronize(stream_);
        }
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begin;
        if (sample > 0) samples.push_back(took.count() / kLaunches);  // the first loads the kernel
      }
      cuda_.cuStreamSynchronize(stream_);
      roofs_.latencies.push_back({what, Figure(std::move(samples))});
    };
    add("launch", false);
    add("launch and synchronise", true);
  }

  void MeasurePeer(int number) {
    int other = 0, may = 0;
    if (!cuda_.cuDeviceGet(&other, number) || !cuda_.cuDeviceCanAccessPeer(&may, device_, other) ||
        may == 0 || !cuda_.cuDevicePrimaryCtxRetain(&peer_context_, other)) {
      return;
    }
    peer_ = other;
    cuda_.cuCtxSetCurrent(peer_context_);
    cuda_.cuMemAlloc_v2(&peer_memory_, static_cast<size_t>(kHostBytes));
    cuda_.cuCtxSetCurrent(context_);
    cuda_.cuCtxEnablePeerAccess(peer_context_, 0U);
    AddCopies(fmt::format("to device {}", number), [this] {
      return cuda_.cuMemcpyPeerAsync(peer_memory_, peer_context_, from_, context_,
                                     static_cast<size_t>(kHostBytes), stream_);
    });
  }

  // Whatever failed before, each is asked for.
  void GiveBack() {
    const std::string failure = cuda_.failure();
    const auto give = [this](bool) { cuda_.Forget(); };
    cuda_.Forget();
    if (stream_ != nullptr) give(cuda_.cuStreamSynchronize(stream_));
    if (peer_memory_ != 0) give(cuda_.cuMemFree_v2(peer_memory_));
    if (peer_context_ != nullptr) give(cuda_.cuDevicePrimaryCtxRelease_v2(peer_));
    if (pinned_ != nullptr) give(cuda_.cuMemFreeHost(pinned_));
    for (const CudaAddress at : allocated_) give(cuda_.cuMemFree_v2(at));
    if (begin_ != nullptr) give(cuda_.cuEventDestroy_v2(begin_));
    if (end_ != nullptr) give(cuda_.cuEventDestroy_v2(end_));
    if (stream_ != nullptr) give(cuda_.cuStreamDestroy_v2(stream_));
    if (module_ != nullptr) give(cuda_.cuModuleUnload(module_));
    if (context_ != nullptr) give(cuda_.cuDevicePrimaryCtxRelease_v2(device_));
    cuda_.Remember(failure);
  }

  CudaDriver& cuda_;
  const int number_;
  int device_ = 0, peer_ = 0;
  DeviceRoofs roofs_;
  const DeviceCode* code_ = nullptr;
  std::string image_;
  CudaHandle context_ = nullptr, module_ = nullptr, stream_ = nullptr, begin_ = nullptr,
             end_ = nullptr, peer_context_ = nullptr;
  CudaAddress cycles_ = 0, to_ = 0, from_ = 0, peer_memory_ = 0;
  void* pinned_ = nullptr;
  std::vector<CudaAddress> allocated_;
  double last_ms_ = 0;
};

std::string BuiltFor() {
  std::string names;
  for (const DeviceCode& code : AllDeviceCode()) {
    names += (names.empty() ? "" : ", ") + std::string(code.architecture);
  }
  return names;
}

}  // namespace

DeviceCalibration CalibrateDevices() {
  constexpr int kNoDevice = 100;
  DeviceCalibration all;
  Result<CudaDriver> driver = CudaDriver::Load();
  if (!driver) {
    all.note = "no GPU was measured: " + driver.message();
    return all;
  }
  if (!HasDeviceCode()) {
    all.note = "no GPU was measured: this ranktap was built without nvcc, so it has no kernels";
    return all;
  }
  int devices = 0;
  driver->cuInit(0U);
  driver->cuDeviceGetCount(&devices);
  if (driver->status() == kNoDevice || (driver->failure().empty() && devices == 0)) {
    all.note = "no GPU was measured: the driver has none";
    return all;
  }
  for (int number = 0; number < devices && driver->failure().empty(); ++number) {
    DeviceMeasurement measurement(&*driver, number);
    if (measurement.Run(devices)) {
      all.devices.push_back(measurement.roofs());
    } else if (driver->failure().empty()) {
      all.note =
          fmt::format("{} was not measured: compute capability {}, and there are kernels for {}",
                      measurement.roofs().name, measurement.roofs().architecture, BuiltFor());
    }
  }
  all.failure = driver->failure();
  return all;
}

}  // namespace ranktap::collector
