// An injected library that records CUPTI's buffers and callbacks into the file that CUPTI_RECORDING
// names, up to CUPTI_RECORDING_MIB (default 8) of them. CUPTI_RECORDING_NODES=1: graphs node by
// node. Preloaded as well, it records what the program's own profiler asks and gets. Not part of
// the product: it copies under a mutex on the program's threads.
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/core/host_clock.h"
#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "tests/gpu/cupti_recorder.h"
#include "tests/gpu/recording.h"
#include "tests/lent_buffers.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

// Several to a recording.
constexpr size_t kBufferBytes = 128 << 10;

struct Recorder {
  Subscriber subscriber = nullptr;
  std::FILE* file = nullptr;
  std::mutex mutex;
  LentBuffers lent;
  std::set<const void*> strings;
  size_t bytes = 0;
  size_t limit = 0;
  bool cut = false;
  bool yielded = false;
};
Recorder* g_recorder = nullptr;

void WriteEntry(EntryKind kind, const void* head, size_t head_bytes, const void* tail,
                size_t tail_bytes) {
  Recorder& recorder = *g_recorder;
  const uint32_t prefix[2] = {static_cast<uint32_t>(kind),
                              static_cast<uint32_t>(head_bytes + tail_bytes)};
  std::fwrite(prefix, sizeof(prefix), 1, recorder.file);
  std::fwrite(head, 1, head_bytes, recorder.file);
  std::fwrite(tail, 1, tail_bytes, recorder.file);
  recorder.bytes += sizeof(prefix) + head_bytes + tail_bytes;
}

// Callbacks come before the records of what they launched: they get half of the room.
void Write(EntryKind kind, const void* head, size_t head_bytes, const void* tail,
           size_t tail_bytes) {
  Recorder& recorder = *g_recorder;
  if (recorder.limit == 0) return;
  const size_t limit = kind == EntryKind::kCallback ? recorder.limit / 2 : recorder.limit;
  if (recorder.bytes + head_bytes + tail_bytes <= limit) {
    WriteEntry(kind, head, head_bytes, tail, tail_bytes);
  } else if (!recorder.cut) {
    recorder.cut = true;
    WriteEntry(EntryKind::kCut, nullptr, 0, nullptr, 0);
  }
}

void WriteString(const char* text) {
  if (text == nullptr || !g_recorder->strings.insert(text).second) return;
  const auto pointer = reinterpret_cast<uint64_t>(text);
  Write(EntryKind::kString, &pointer, sizeof(pointer), text, std::strlen(text));
}

void OnRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  std::memset(*buffer, 0, kBufferBytes);
  *bytes = kBufferBytes;
  g_recorder->lent.Lend();
  *max_records = 0;
}

void WriteStringsOf(uint8_t* buffer, size_t valid_bytes) {
  Record* record = nullptr;
  while (RecordedCupti().api.ActivityGetNextRecord(buffer, valid_bytes, &record) == kSuccess) {
    if (record->kind == Kind::kConcurrentKernel) {
      WriteString(reinterpret_cast<const KernelRecord*>(record)->name);
    } else if (record->kind == Kind::kMemory2) {
      WriteString(reinterpret_cast<const MemoryRecord*>(record)->name);
    } else if (record->kind == Kind::kDevice) {
      WriteString(reinterpret_cast<const DeviceRecord*>(record)->name);
    }
  }
}

void OnCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  RecordBuffer(context, stream, buffer, valid_bytes);
  std::free(buffer);
  g_recorder->lent.TakeBack();
}

void OnCall(void*, uint32_t domain, uint32_t cbid, const void* raw) {
  if (domain == static_cast<uint32_t>(Domain::kResource)) return;
  const auto& data = *static_cast<const ApiCallbackData*>(raw);
  const CallbackEntry entry{.monotonic_raw_ns = agent::ClockNs(CLOCK_MONOTONIC_RAW),
                            .thread = static_cast<uint64_t>(gettid()),
                            .domain = domain,
                            .cbid = cbid,
                            .site = static_cast<uint32_t>(data.site),
                            .correlation = data.correlation_id,
                            .status = data.return_value == nullptr ? 0 : *data.return_value,
                            .pad = 0};
  const std::lock_guard lock(g_recorder->mutex);
  Write(EntryKind::kCallback, &entry, sizeof(entry), data.function_name,
        std::strlen(data.function_name));
}

void TakeAllBack() {
  (void)RecordedCupti().api.ActivityFlushAll(kFlushForced);
  g_recorder->lent.AwaitAll();
}

void Finish() {
  // The client's buffers are its own to flush, and its code may be gone.
  if (!g_recorder->yielded) TakeAllBack();
  const std::lock_guard lock(g_recorder->mutex);
  std::fclose(g_recorder->file);
  g_recorder->limit = 0;
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '1';
}

std::vector<Kind> KindsToRecord() {
  std::vector<Kind> kinds = {Kind::kConcurrentKernel, Kind::kMemcpy,     Kind::kMemset,
                             Kind::kSynchronization,  Kind::kOverhead,   Kind::kDevice,
                             Kind::kContext,          Kind::kStream,     Kind::kMemory2,
                             Kind::kMemcpy2,          Kind::kMemoryPool, Kind::kJit};
  if (!IsSet("CUPTI_RECORDING_NODES")) kinds.push_back(Kind::kGraphTrace);
  return kinds;
}

void EnableCallbacks(const Api& api, Subscriber subscriber) {
  for (const Domain domain : {Domain::kRuntime, Domain::kDriver}) {
    for (uint32_t cbid = 1; cbid < 1024; ++cbid) {
      const char* name = nullptr;
      if (api.GetCallbackName(static_cast<uint32_t>(domain), cbid, &name) == kSuccess &&
          name != nullptr && ClassifyCall(PlainName(name)).group != CallGroup::kNone) {
        api.EnableCallback(1, subscriber, static_cast<uint32_t>(domain), cbid);
      }
    }
  }
}

bool Open(const char* path) {
  auto* recorder = new Recorder;
  recorder->file = std::fopen(path, "wbe");
  if (!RecordedCupti().ok() || recorder->file == nullptr) {
    std::fprintf(stderr, "cupti_recorder: %s\n", RecordedCupti().failure.c_str());
    return false;
  }
  const char* mib = std::getenv("CUPTI_RECORDING_MIB");
  recorder->limit = (mib == nullptr ? 8 : std::strtoul(mib, nullptr, 10)) << 20;
  std::fwrite(kRecordingMagic, sizeof(kRecordingMagic), 1, recorder->file);
  std::fwrite(&RecordedCupti().version, sizeof(uint32_t), 1, recorder->file);
  g_recorder = recorder;
  return true;
}

bool Start() {
  const char* path = std::getenv("CUPTI_RECORDING");
  if (path == nullptr || g_recorder != nullptr || !Open(path)) return false;
  const Api& api = RecordedCupti().api;
  if (api.Subscribe(&g_recorder->subscriber, &OnCall, nullptr) != kSuccess ||
      api.ActivityRegisterCallbacks(&OnRequested, &OnCompleted) != kSuccess) {
    return false;
  }
  EnableCallbacks(api, g_recorder->subscriber);
  for (const Kind kind : KindsToRecord()) api.ActivityEnable(static_cast<uint32_t>(kind));
  std::atexit(&Finish);
  return true;
}

}  // namespace

const LoadedApi& RecordedCupti() {
  static const LoadedApi* const loaded = [] {
    const char* chosen = std::getenv("RANKTAP_CUPTI");
    return new LoadedApi(LoadApi(chosen == nullptr ? "" : chosen));
  }();
  return *loaded;
}

void RecordBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t valid_bytes) {
  if (g_recorder == nullptr) return;
  const std::lock_guard lock(g_recorder->mutex);
  WriteStringsOf(buffer, valid_bytes);
  Write(EntryKind::kBuffer, buffer, valid_bytes, nullptr, 0);
  size_t dropped = 0;
  if (RecordedCupti().api.ActivityGetNumDroppedRecords(context, stream, &dropped) == kSuccess &&
      dropped != 0) {
    const uint64_t count = dropped;
    Write(EntryKind::kDropped, &count, sizeof(count), nullptr, 0);
  }
}

void RecordClientCall(const std::string& text) {
  if (g_recorder == nullptr) return;
  const uint64_t now = agent::ClockNs(CLOCK_MONOTONIC_RAW);
  const std::lock_guard lock(g_recorder->mutex);
  Write(EntryKind::kClientCall, &now, sizeof(now), text.data(), text.size());
}

void YieldRecorder() {
  if (g_recorder == nullptr || g_recorder->yielded) return;
  g_recorder->yielded = true;
  const Api& api = RecordedCupti().api;
  TakeAllBack();
  for (const Kind kind : KindsToRecord()) api.ActivityDisable(static_cast<uint32_t>(kind));
  (void)api.Unsubscribe(g_recorder->subscriber);
}

}  // namespace ranktap::gpu

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return ranktap::gpu::Start() ? 1 : 0;
}
