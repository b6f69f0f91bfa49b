// An injected library that records CUPTI's buffers and callbacks into the file that CUPTI_RECORDING
// names, up to CUPTI_RECORDING_MIB (default 8) of them. Not part of the product: it copies under a
// mutex on the program's threads.
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
#include "tests/gpu/recording.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

constexpr size_t kBufferBytes = 1 << 20;

struct Recorder {
  LoadedApi loaded;
  Subscriber subscriber = nullptr;
  std::FILE* file = nullptr;
  std::mutex mutex;
  std::set<const void*> strings;
  size_t bytes = 0;
  size_t limit = 0;
};
Recorder* g_recorder = nullptr;

void Write(EntryKind kind, const void* head, size_t head_bytes, const void* tail,
           size_t tail_bytes) {
  Recorder& recorder = *g_recorder;
  if (recorder.bytes + head_bytes + tail_bytes > recorder.limit) return;
  const uint32_t prefix[2] = {static_cast<uint32_t>(kind),
                              static_cast<uint32_t>(head_bytes + tail_bytes)};
  std::fwrite(prefix, sizeof(prefix), 1, recorder.file);
  std::fwrite(head, 1, head_bytes, recorder.file);
  std::fwrite(tail, 1, tail_bytes, recorder.file);
  recorder.bytes += sizeof(prefix) + head_bytes + tail_bytes;
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
  *max_records = 0;
}

void OnCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::lock_guard lock(g_recorder->mutex);
  Record* record = nullptr;
  while (g_recorder->loaded.api.ActivityGetNextRecord(buffer, valid_bytes, &record) == kSuccess) {
    if (record->kind == Kind::kConcurrentKernel) {
      WriteString(reinterpret_cast<const KernelRecord*>(record)->name);
    } else if (record->kind == Kind::kMemory2) {
      WriteString(reinterpret_cast<const MemoryRecord*>(record)->name);
    } else if (record->kind == Kind::kDevice) {
      WriteString(reinterpret_cast<const DeviceRecord*>(record)->name);
    }
  }
  Write(EntryKind::kBuffer, buffer, valid_bytes, nullptr, 0);
  size_t dropped = 0;
  if (g_recorder->loaded.api.ActivityGetNumDroppedRecords(context, stream, &dropped) == kSuccess &&
      dropped != 0) {
    const uint64_t count = dropped;
    Write(EntryKind::kDropped, &count, sizeof(count), nullptr, 0);
  }
  std::free(buffer);
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

void Finish() {
  (void)g_recorder->loaded.api.ActivityFlushAll(kFlushForced);
  const std::lock_guard lock(g_recorder->mutex);
  std::fclose(g_recorder->file);
  g_recorder->limit = 0;
}

bool Start() {
  const char* path = std::getenv("CUPTI_RECORDING");
  if (path == nullptr || g_recorder != nullptr) return false;
  auto* recorder = new Recorder;
  recorder->loaded = LoadApi("");
  recorder->file = std::fopen(path, "wbe");
  if (!recorder->loaded.ok() || recorder->file == nullptr) {
    std::fprintf(stderr, "cupti_recorder: %s\n", recorder->loaded.failure.c_str());
    return false;
  }
  const char* mib = std::getenv("CUPTI_RECORDING_MIB");
  recorder->limit = (mib == nullptr ? 8 : std::strtoul(mib, nullptr, 10)) << 20;
  std::fwrite(kRecordingMagic, sizeof(kRecordingMagic), 1, recorder->file);
  std::fwrite(&recorder->loaded.version, sizeof(uint32_t), 1, recorder->file);
  g_recorder = recorder;
  const Api& api = recorder->loaded.api;
  if (api.Subscribe(&recorder->subscriber, &OnCall, nullptr) != kSuccess ||
      api.ActivityRegisterCallbacks(&OnRequested, &OnCompleted) != kSuccess) {
    return false;
  }
  for (const Domain domain : {Domain::kRuntime, Domain::kDriver}) {
    for (uint32_t cbid = 1; cbid < 1024; ++cbid) {
      const char* name = nullptr;
      if (api.GetCallbackName(static_cast<uint32_t>(domain), cbid, &name) == kSuccess &&
          name != nullptr && ClassifyCall(PlainName(name)).group != CallGroup::kNone) {
        api.EnableCallback(1, recorder->subscriber, static_cast<uint32_t>(domain), cbid);
      }
    }
  }
  for (const Kind kind :
       {Kind::kConcurrentKernel, Kind::kMemcpy, Kind::kMemset, Kind::kGraphTrace,
        Kind::kSynchronization, Kind::kOverhead, Kind::kDevice, Kind::kContext, Kind::kStream,
        Kind::kMemory2, Kind::kMemoryPool, Kind::kMemcpy2, Kind::kJit}) {
    api.ActivityEnable(static_cast<uint32_t>(kind));
  }
  std::atexit(&Finish);
  return true;
}

}  // namespace
}  // namespace ranktap::gpu

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return ranktap::gpu::Start() ? 1 : 0;
}
