#include "collector/trace/processors.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

size_t CountProcessors() {
  cpu_set_t allowed;
  const bool is_known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const size_t count =
      is_known ? static_cast<size_t>(CPU_COUNT(&allowed)) : std::thread::hardware_concurrency();
  // A container sees the quota of its own group here.
  const Result<std::string> quota = ReadRegularFile("/sys/fs/cgroup/cpu.max", 4096);
  return ProcessorsWithin(count, quota ? *quota : "");
}

std::atomic<size_t> busy = 0;

}  // namespace

size_t ProcessorsWithin(size_t count, const std::string& quota) {
  unsigned long long used = 0, period = 0;
  const bool is_limited = std::sscanf(quota.c_str(), "%llu %llu", &used, &period) == 2;
  if (is_limited && period > 0) count = std::min<size_t>(count, (used + period - 1) / period);
  return std::max<size_t>(count, 1);
}

size_t ProcessorCount() {
  static const size_t count = CountProcessors();
  return count;
}

BusyThreads::BusyThreads(size_t count) : count_(count) { busy += count; }

BusyThreads::~BusyThreads() { busy -= count_; }

BusyThreads BusyThreads::OnIdle(size_t most) {
  // Who asks is busy, whether it has said so or not.
  const size_t taken = std::max<size_t>(busy, 1);
  return BusyThreads(std::min(most, ProcessorCount() - std::min(ProcessorCount(), taken)));
}

}  // namespace ranktap::collector
