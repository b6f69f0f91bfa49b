// Times of the client's records.
// Runs on: see cupti_client_clock.h.  May not: hold its lock across a call into CUPTI.
#include "agent/sources/cupti/cupti_client_clock.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>

#include "agent/core/host_clock.h"
#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti::client_clock {
namespace {

struct Reading {
  int64_t realtime_ns;
  int64_t theirs;
};

std::atomic<Clock> g_clock{nullptr};
// One session's readings, the oldest first.
struct Readings {
  static constexpr size_t kMost = 128;
  static constexpr int64_t kApartNs = 1'000'000;

  std::array<Reading, kMost> all{};
  size_t count = 0;

  // Keeps the later of two that are close, and every other one of too many.
  void Add(const Reading& reading) {
    const bool is_close = count >= 2 && reading.realtime_ns - all[count - 2].realtime_ns < kApartNs;
    if (is_close) --count;
    if (count == kMost) {
      for (size_t i = 0; i < kMost / 2; ++i) all[i] = all[2 * i];
      count = kMost / 2;
    }
    all[count++] = reading;
  }
};

std::mutex g_mutex;  // of the next
Readings g_readings;

// The tightest of eight.
Reading Read(Clock clock) {
  Reading best{};
  int64_t best_gap = INT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const auto before = static_cast<int64_t>(ClockNs(CLOCK_REALTIME));
    const auto theirs = static_cast<int64_t>(clock());
    const int64_t gap = static_cast<int64_t>(ClockNs(CLOCK_REALTIME)) - before;
    if (gap < 0 || gap >= best_gap) continue;
    best_gap = gap;
    best = {before + gap / 2, theirs};
  }
  return best;
}

// In whole numbers: ticks since the start of a machine have more digits than a double.
uint64_t ToTheirs(uint64_t time_ns, const Readings& readings) {
  const auto is_later = [time_ns](const Reading& reading) {
    return reading.realtime_ns >= static_cast<int64_t>(time_ns);
  };
  const auto begin = readings.all.begin(), end = begin + static_cast<ptrdiff_t>(readings.count);
  // Never the first: before it, the first line goes on.
  const auto at = std::min(std::find_if(begin + 1, end, is_later), end - 1);
  const Reading &from = at[-1], &to = *at;
  const __int128 since = static_cast<int64_t>(time_ns) - from.realtime_ns;
  const int64_t base = std::max<int64_t>(to.realtime_ns - from.realtime_ns, 1);
  return static_cast<uint64_t>(from.theirs +
                               static_cast<int64_t>(since * (to.theirs - from.theirs) / base));
}

constexpr uint16_t kNone = 0;  // there the kind is

struct Times {
  uint32_t kind;
  std::array<uint16_t, 5> offsets;
  uint32_t since = 0;  // the version that writes them
};

template <typename Type>
constexpr Times StartAndEnd(Kind kind) {
  return {static_cast<uint32_t>(kind), {offsetof(Type, start), offsetof(Type, end)}};
}

constexpr Times KernelTimes(Kind kind) {
  return {static_cast<uint32_t>(kind),
          {offsetof(KernelRecord, start), offsetof(KernelRecord, end),
           offsetof(KernelRecord, completed), offsetof(KernelRecord, queued),
           offsetof(KernelRecord, submitted)}};
}

constexpr auto kTimes = std::to_array<Times>({
    KernelTimes(Kind::kConcurrentKernel),
    KernelTimes(Kind::kKernel),
    StartAndEnd<MemcpyRecord>(Kind::kMemcpy),
    StartAndEnd<PeerMemcpyRecord>(Kind::kMemcpy2),
    StartAndEnd<MemsetRecord>(Kind::kMemset),
    StartAndEnd<ApiRecord>(Kind::kRuntime),
    StartAndEnd<ApiRecord>(Kind::kDriver),
    StartAndEnd<OverheadRecord>(Kind::kOverhead),
    StartAndEnd<SynchronizationRecord>(Kind::kSynchronization),
    StartAndEnd<GraphTraceRecord>(Kind::kGraphTrace),
    StartAndEnd<JitRecord>(Kind::kJit),
    {static_cast<uint32_t>(Kind::kMarker), {offsetof(MarkerRecord, timestamp)}},
    {static_cast<uint32_t>(Kind::kMemory2), {offsetof(MemoryRecord, timestamp)}},
    {static_cast<uint32_t>(Kind::kMemoryPool), {offsetof(MemoryPoolRecord, timestamp)}},
    {static_cast<uint32_t>(Kind::kCudaEvent),
     {offsetof(CudaEventRecord, device_timestamp)},
     kVersion128},
    {static_cast<uint32_t>(Kind::kDevice), {}},
    {static_cast<uint32_t>(Kind::kContext), {}},
    {static_cast<uint32_t>(Kind::kName), {}},
    {static_cast<uint32_t>(Kind::kMarkerData), {}},
    {static_cast<uint32_t>(Kind::kStream), {}},
    {static_cast<uint32_t>(Kind::kExternalCorrelation), {}},
});

const Times* TimesOf(uint32_t kind) {
  const auto found = std::ranges::find(kTimes, kind, &Times::kind);
  return found == kTimes.end() ? nullptr : &*found;
}

void TranslateRecord(Record& record, uint32_t version, const Readings& readings) {
  const Times* const times = TimesOf(static_cast<uint32_t>(record.kind));
  if (times == nullptr || version < times->since) return;
  for (const uint16_t offset : times->offsets) {
    if (offset == kNone) return;
    auto* const place = reinterpret_cast<uint8_t*>(&record) + offset;
    uint64_t time = 0;
    std::memcpy(&time, place, sizeof(time));
    if (time == 0) continue;
    time = ToTheirs(time, readings);
    std::memcpy(place, &time, sizeof(time));
  }
}

}  // namespace

void Set(Clock clock) {
  const std::lock_guard lock(g_mutex);
  g_readings.count = 0;
  if (clock != nullptr) g_readings.Add(Read(clock));
  g_clock.store(clock);
}

Clock Get() { return g_clock.load(); }

bool KnowsTimesOf(uint32_t kind) { return TimesOf(kind) != nullptr; }

void Translate(const Api& api, uint32_t version, uint8_t* buffer, size_t valid_bytes) {
  const Clock clock = Get();
  if (clock == nullptr) return;
  const Reading now = Read(clock);
  Readings readings;
  {
    const std::lock_guard lock(g_mutex);
    if (g_readings.count == 0) return;
    g_readings.Add(now);
    readings = g_readings;
  }
  Record* record = nullptr;
  while (api.ActivityGetNextRecord(buffer, valid_bytes, &record) == kSuccess) {
    TranslateRecord(*record, version, readings);
  }
}

}  // namespace ranktap::agent::cupti::client_clock
