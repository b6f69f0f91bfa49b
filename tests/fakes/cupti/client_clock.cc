#include "tests/fakes/cupti/client_clock.h"

#include <cupti.h>
#include <stddef.h>
#include <string.h>

#include <atomic>
#include <mutex>

#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/refusal.h"

namespace ranktap::standin {
namespace {

struct Reading {
  int64_t device_ns;
  int64_t theirs;
};

std::mutex& ClockLock() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

std::atomic<bool> g_was_active{false};
// Under the lock.
CUpti_TimestampCallbackFunc g_clock = nullptr;
Reading g_first{};
uint64_t g_stale_left = 0;

Reading Read() {
  const auto before = static_cast<int64_t>(Machine()->device_clock_ns());
  const auto theirs = static_cast<int64_t>(g_clock());
  const auto after = static_cast<int64_t>(Machine()->device_clock_ns());
  return {before + (after - before) / 2, theirs};
}

struct Times {
  uint32_t kind;
  size_t offsets[3];
  bool of_device = false;
};

constexpr Times kTimes[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
     {offsetof(CUpti_ActivityKernel8, start), offsetof(CUpti_ActivityKernel8, end)},
     true},
    {CUPTI_ACTIVITY_KIND_KERNEL,
     {offsetof(CUpti_ActivityKernel8, start), offsetof(CUpti_ActivityKernel8, end)},
     true},
    {CUPTI_ACTIVITY_KIND_MEMCPY,
     {offsetof(CUpti_ActivityMemcpy5, start), offsetof(CUpti_ActivityMemcpy5, end)},
     true},
    {CUPTI_ACTIVITY_KIND_MEMCPY2,
     {offsetof(CUpti_ActivityMemcpyPtoP4, start), offsetof(CUpti_ActivityMemcpyPtoP4, end)},
     true},
    {CUPTI_ACTIVITY_KIND_MEMSET,
     {offsetof(CUpti_ActivityMemset4, start), offsetof(CUpti_ActivityMemset4, end)},
     true},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
     {offsetof(CUpti_ActivityGraphTrace, start), offsetof(CUpti_ActivityGraphTrace, end)},
     true},
    {CUPTI_ACTIVITY_KIND_RUNTIME,
     {offsetof(CUpti_ActivityAPI, start), offsetof(CUpti_ActivityAPI, end)}},
    {CUPTI_ACTIVITY_KIND_DRIVER,
     {offsetof(CUpti_ActivityAPI, start), offsetof(CUpti_ActivityAPI, end)}},
    {CUPTI_ACTIVITY_KIND_OVERHEAD,
     {offsetof(CUpti_ActivityOverhead, start), offsetof(CUpti_ActivityOverhead, end)}},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
     {offsetof(CUpti_ActivitySynchronization, start),
      offsetof(CUpti_ActivitySynchronization, end)}},
    {CUPTI_ACTIVITY_KIND_JIT,
     {offsetof(CUpti_ActivityJit, start), offsetof(CUpti_ActivityJit, end)}},
    {CUPTI_ACTIVITY_KIND_MEMORY2, {offsetof(CUpti_ActivityMemory3, timestamp)}},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, {offsetof(CUpti_ActivityMemoryPool2, timestamp)}},
};

const Times* TimesOf(uint32_t kind) {
  for (const Times& times : kTimes) {
    if (times.kind == kind) return &times;
  }
  return nullptr;
}

void Change(uint8_t* at, const Times& times, const Reading& now) {
  const bool is_lost = times.of_device && Script().clock_zeroes;
  for (size_t offset : times.offsets) {
    uint64_t time = 0;
    if (offset == 0) break;
    memcpy(&time, at + offset, sizeof time);
    if (time == 0) continue;
    const auto since = static_cast<__int128>(static_cast<int64_t>(time) - g_first.device_ns);
    const int64_t base = now.device_ns > g_first.device_ns ? now.device_ns - g_first.device_ns : 1;
    time = static_cast<uint64_t>(
        g_first.theirs + static_cast<int64_t>(since * (now.theirs - g_first.theirs) / base));
    if (is_lost) time = 0;
    memcpy(at + offset, &time, sizeof time);
  }
}

}  // namespace

void NoteActivity() { g_was_active.store(true, std::memory_order_relaxed); }

void PutIntoClientClock(uint8_t* buffer, size_t valid_bytes) {
  std::lock_guard lock(ClockLock());
  if (g_clock == nullptr) return;
  const Reading now = Read();
  for (uint8_t* at = buffer; at < buffer + valid_bytes;) {
    uint32_t kind;
    memcpy(&kind, at, sizeof kind);
    const size_t bytes = RecordSize(kind);
    if (bytes == 0) return;
    const Times* times = TimesOf(kind);
    if (times != nullptr && times->of_device && g_stale_left > 0) {
      --g_stale_left;
    } else if (times != nullptr) {
      Change(at, *times, now);
    }
    at += bytes;
  }
}

bool ReadClientClock(uint64_t* now) {
  std::lock_guard lock(ClockLock());
  if (g_clock == nullptr) return false;
  *now = g_clock();
  return true;
}

}  // namespace ranktap::standin

using namespace ranktap::standin;

extern "C" CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  RETURN_UNLESS_ADMITTED();
  if (clock == nullptr) return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(ClockLock());
  const bool is_late = g_clock != nullptr || g_was_active.load();
  g_clock = clock;
  g_first = Read();
  g_stale_left = is_late ? Script().stale_clock : 0;
  return CUPTI_SUCCESS;
}
