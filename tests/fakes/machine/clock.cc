#include "tests/fakes/machine/clock.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <mutex>

#include "tests/fakes/machine/script.h"

namespace ranktap::standin {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Below this a sleep would take longer than the wait (timer slack 50 us).
constexpr int64_t kSpinNs = 30'000;

int64_t ReadClock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

struct ClockError {
  uint64_t generation;
  int64_t offset_ns;
  int64_t drift_ppm;
  int64_t origin_ns;
};

int64_t ErrorAt(int64_t realtime_ns) {
  static std::mutex mutex;
  static ClockError error{0, 0, 0, ReadClock(CLOCK_REALTIME)};
  static std::atomic<bool> none{false};
  static std::atomic<uint64_t> known{0};
  if (none.load(std::memory_order_relaxed) &&
      known.load(std::memory_order_relaxed) == SettingsGeneration()) {
    return 0;
  }
  std::lock_guard lock(mutex);
  if (error.generation != SettingsGeneration()) {
    error.generation = SettingsGeneration();
    error.offset_ns = SignedSetting("CLOCK_OFFSET_NS", 0);
    error.drift_ppm = SignedSetting("CLOCK_DRIFT_PPM", 0);
    none.store(error.offset_ns == 0 && error.drift_ppm == 0, std::memory_order_relaxed);
    known.store(error.generation, std::memory_order_relaxed);
  }
  return error.offset_ns + (realtime_ns - error.origin_ns) / 1'000'000 * error.drift_ppm;
}

// A pair of readings with nothing in between that took long.
struct Pair {
  int64_t device_ns;
  int64_t raw_ns;
};

Pair TakePair() {
  Pair best{};
  int64_t best_gap = INT64_MAX;
  for (int attempt = 0; attempt < 16 && best_gap > 120; ++attempt) {
    int64_t before = ReadClock(CLOCK_MONOTONIC_RAW);
    int64_t realtime = ReadClock(CLOCK_REALTIME);
    int64_t after = ReadClock(CLOCK_MONOTONIC_RAW);
    if (after - before >= best_gap) continue;
    best_gap = after - before;
    best = {realtime + ErrorAt(realtime), before + best_gap / 2};
  }
  return best;
}

}  // namespace

uint64_t DeviceNow() {
  int64_t realtime = ReadClock(CLOCK_REALTIME);
  return static_cast<uint64_t>(realtime + ErrorAt(realtime));
}

uint64_t RawNow() { return static_cast<uint64_t>(ReadClock(CLOCK_MONOTONIC_RAW)); }

uint64_t RawOfDevice(uint64_t device_ns) {
  static std::mutex mutex;
  static Pair pair = TakePair();
  std::lock_guard lock(mutex);
  if (ReadClock(CLOCK_MONOTONIC_RAW) - pair.raw_ns > 20'000'000) pair = TakePair();
  return static_cast<uint64_t>(pair.raw_ns + (static_cast<int64_t>(device_ns) - pair.device_ns));
}

void WaitUntilDevice(uint64_t device_ns) {
  for (;;) {
    int64_t left = static_cast<int64_t>(device_ns - DeviceNow());
    if (left <= 0) return;
    if (left < kSpinNs) {
      sched_yield();
      continue;
    }
    timespec nap{left / kSecond, left % kSecond};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
  }
}

}  // namespace ranktap::standin
