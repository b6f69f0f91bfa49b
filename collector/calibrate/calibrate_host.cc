#include "collector/calibrate/calibrate_host.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "collector/calibrate/host_kernels.h"
#include "collector/calibrate/numa_nodes.h"
#include "collector/calibrate/samples.h"
#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

constexpr double kSampleSeconds = 0.05;
constexpr size_t kMostCpuInfo = 16u << 20;

// Of this thread: while somebody else has its core, nobody measures the core.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::vector<int> AllowedCores() {
  std::vector<int> cores;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

// What one thread runs; it makes its memory itself, near its core.
using Work = std::function<void(uint64_t rounds)>;
using MakeWork = std::function<Work()>;

// Amounts a second of threads that begin together, added up.
MeasuredRate Measure(const std::vector<int>& cores, size_t threads, double amount_a_round,
                     const MakeWork& make) {
  std::atomic<uint64_t> rounds{1};
  std::vector<double> took(threads), rates;
  std::atomic<bool> is_over{false};
  std::barrier gate(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(cores[t], &own);
      (void)sched_setaffinity(0, sizeof(own), &own);
      const Work work = make();
      while (true) {
        gate.arrive_and_wait();
        if (is_over) return;
        const double begin = CpuSeconds();
        work(rounds);
        took[t] = CpuSeconds() - begin;
        gate.arrive_and_wait();
      }
    });
  }
  const auto run = [&] {
    gate.arrive_and_wait();
    gate.arrive_and_wait();
    return *std::min_element(took.begin(), took.end());
  };
  // Rounds until a sample lasts long enough; this warms up clocks and caches too.
  for (double shortest = run(); shortest < kSampleSeconds; shortest = run()) {
    const double more = shortest > 0 ? 1.2 * kSampleSeconds / shortest : 10;
    rounds = static_cast<uint64_t>(static_cast<double>(rounds) * std::clamp(more, 1.1, 10.0)) + 1;
  }
  for (int sample = 0; sample < kCalibrationSamples; ++sample) {
    run();
    double rate = 0;
    for (const double seconds : took) {
      rate += amount_a_round * static_cast<double>(rounds) / std::max(seconds, 1e-9);
    }
    rates.push_back(rate);
  }
  is_over = true;
  gate.arrive_and_wait();
  for (std::thread& worker : workers) worker.join();
  return MedianOf(rates);
}

// Three arrays of a triad.
class Arrays {
 public:
  explicit Arrays(uint64_t bytes)
      : count_(std::max<uint64_t>(64, bytes / (3 * sizeof(float)) / 64 * 64)),
        size_(3 * count_ * sizeof(float)),
        memory_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) return;
    (void)madvise(memory_, size_, MADV_HUGEPAGE);
    std::fill_n(static_cast<float*>(memory_), 3 * count_, 1.0F);
  }
  ~Arrays() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  uint64_t bytes() const { return size_; }
  void Run(uint64_t rounds) const {
    if (memory_ == MAP_FAILED) return;
    auto* const a = static_cast<float*>(memory_);
    Triad(a, a + count_, a + 2 * count_, count_, rounds);
  }

 private:
  uint64_t count_, size_;
  void* memory_;
};

MeasuredRate MeasureTriad(const std::vector<int>& cores, size_t threads, int64_t bytes) {
  const auto wanted = static_cast<uint64_t>(bytes);
  return Measure(cores, threads, static_cast<double>(Arrays(wanted).bytes()), [wanted] {
    auto arrays = std::make_shared<Arrays>(wanted);
    return [arrays](uint64_t rounds) { arrays->Run(rounds); };
  });
}

MeasuredRate MeasureArithmetic(const std::vector<int>& cores, size_t threads,
                               const ArithmeticKernel& kernel) {
  return Measure(cores, threads, kernel.operations_a_round, [&kernel] {
    return [&kernel](uint64_t rounds) {
      volatile double sink = kernel.run(rounds);
      (void)sink;
    };
  });
}

// The first line of /proc/cpuinfo that begins so, without that.
std::string CpuInfo(std::string_view name) {
  const Result<std::string> text = ReadRegularFile("/proc/cpuinfo", kMostCpuInfo);
  if (!text) return {};
  for (size_t at = 0; at < text->size(); at = text->find('\n', at) + 1) {
    const size_t end = std::min(text->find('\n', at), text->size() - 1);
    const std::string_view line(text->data() + at, end - at);
    const size_t colon = line.find(": ");
    if (line.starts_with(name) && colon != line.npos) return std::string(line.substr(colon + 2));
    if (end + 1 >= text->size()) break;
  }
  return {};
}

// arm64 has numbers where others have a name.
std::string Processor() {
  if (std::string name = CpuInfo("model name"); !name.empty()) return name;
  const std::string part = CpuInfo("CPU part");
  return part.empty() ? part : "implementer " + CpuInfo("CPU implementer") + ", part " + part;
}

// Of a core's data caches by level, from the kernel: CPUID tells a virtual machine of its host's.
std::vector<int64_t> CacheBytes(int core) {
  std::vector<int64_t> bytes(4, 0);
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder + std::to_string(index);
    const auto level = ReadRegularFile(cache + "/level", 64),
               type = ReadRegularFile(cache + "/type", 64),
               size = ReadRegularFile(cache + "/size", 64);
    if (!level || !type || !size || type->starts_with("Instruction")) continue;
    const long number = std::strtol(level->c_str(), nullptr, 10);
    char* unit = nullptr;
    const long amount = std::strtol(size->c_str(), &unit, 10);
    if (number < 1 || number > 3 || amount <= 0) continue;
    bytes[static_cast<size_t>(number)] = int64_t{amount} << (*unit == 'M' ? 20 : 10);
  }
  return bytes;
}

}  // namespace

HostRoofs CalibrateHost() {
  HostRoofs roofs;
  roofs.host = HostName();
  roofs.processor = Processor();
  roofs.date = Today();
  utsname kernel{};
  if (uname(&kernel) == 0) roofs.kernel = kernel.release;
  const std::vector<int> cores = AllowedCores();
  roofs.cores = static_cast<int>(cores.size());
  for (const ArithmeticKernel& kernel : ArithmeticKernels()) {
    roofs.arithmetic.push_back({std::string(kernel.type), std::string(kernel.instruction),
                                MeasureArithmetic(cores, 1, kernel),
                                MeasureArithmetic(cores, cores.size(), kernel)});
  }
  roofs.mhz = std::strtod(CpuInfo("cpu MHz").c_str(), nullptr);  // after the loops woke it
  const std::vector<int64_t> caches = CacheBytes(cores[0]);
  const int64_t l1 = caches[1], l2 = caches[2], l3 = caches[3];
  const auto threads = static_cast<int64_t>(cores.size());
  const auto add = [&](const char* level, int64_t bytes_a_core) {
    if (bytes_a_core <= 0) return;
    roofs.levels.push_back({level, bytes_a_core, MeasureTriad(cores, 1, bytes_a_core),
                            MeasureTriad(cores, cores.size(), bytes_a_core)});
  };
  // Half of a cache, so that what else is in it leaves room; L3 is shared, and must not fit L2.
  add("L1", l1 / 2);
  add("L2", l2 / 2);
  if (l3 / 2 / threads > l2) add("L3", l3 / 2 / threads);
  roofs.cache_bytes = std::max({l1, l2, l3});
  constexpr int64_t kLeast = 192 << 20, kMost = 1024 << 20;
  const int64_t beyond_caches = std::clamp(4 * roofs.cache_bytes, kLeast, kMost);
  add("memory", beyond_caches / threads);
  const std::map<int, std::vector<int>> nodes = NumaNodes("/sys/devices/system/node", cores);
  for (const auto& [node, own] : nodes) {
    if (nodes.size() == 1) break;  // said already
    const int64_t bytes = beyond_caches / static_cast<int64_t>(own.size());
    roofs.levels.push_back({"memory of node " + std::to_string(node), bytes,
                            MeasureTriad(own, 1, bytes), MeasureTriad(own, own.size(), bytes)});
  }
  return roofs;
}

}  // namespace ranktap::collector
