// The activity API's entries.
#include <string.h>
#include <time.h>

#include <atomic>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/client_clock.h"
#include "tests/fakes/cupti/device_buffers.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

using namespace ranktap::standin;

namespace {

bool Modelled(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_NAME || kind == CUPTI_ACTIVITY_KIND_NVLINK ||
         kind == CUPTI_ACTIVITY_KIND_PCIE || RecordSize(kind) != 0;
}

// A kind has the last word over calls that were chosen one by one before it.
void ForgetChosenCalls(CUpti_ActivityKind kind) {
  if (kind != CUPTI_ACTIVITY_KIND_RUNTIME && kind != CUPTI_ACTIVITY_KIND_DRIVER) return;
  const int domain = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                         : CUPTI_CB_DOMAIN_DRIVER_API;
  for (auto& own : TheSubscription().api_record[domain]) own.store(0);
}

CUptiResult Enable(CUpti_ActivityKind kind, bool dump) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || static_cast<uint32_t>(kind) >= kMostKinds) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_KIND;
  }
  if (!Modelled(kind)) {
    RefuseCupti("cuptiActivityEnable of a kind that is not modelled");
    return LastCuptiError() = CUPTI_ERROR_NOT_COMPATIBLE;
  }
  ListenToMachine();
  NoteActivity();
  ForgetChosenCalls(kind);
  bool before = TheSubscription().kind_enabled[kind].exchange(true);
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) TheSubscription().graphs_whole.store(true);
  if (!HaveBufferCallbacks()) return CUPTI_SUCCESS;
  // Before the driver is up there is nothing to tell: the records come when it is.
  bool up = Machine()->initialized();
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE && up && (dump || !before)) WriteDeviceRecords();
  if (!dump) return CUPTI_SUCCESS;
  if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) {
    Machine()->for_each_resource([](const Resource& resource) {
      if (resource.change == ResourceChange::kContextCreated) WriteContextRecord(resource);
    });
  } else if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
    Machine()->for_each_resource([](const Resource& resource) {
      if (resource.change == ResourceChange::kStreamCreated) WriteStreamRecord(resource);
    });
  }
  return CUPTI_SUCCESS;
}

CUptiResult EnableApi(int domain, CUpti_CallbackId cbid, uint8_t enable) {
  if (cbid == 0 || cbid >= kMostCallbackIds) return CUPTI_ERROR_INVALID_PARAMETER;
  ListenToMachine();
  TheSubscription().api_record[domain][cbid].store(enable != 0 ? 1 : 2);
  return CUPTI_SUCCESS;
}

// As the vendor's before 13.4 U1, by its release notes.
void BurnMoreCpuEachTime() {
  static std::atomic<uint64_t> flushes{0};
  const uint64_t ns = ++flushes * Script().flush_grows_us * 1000;
  const auto now_ns = [] {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  };
  for (const uint64_t until = now_ns() + ns; now_ns() < until;) {
  }
}

CUptiResult Flush(uint32_t flag) {
  if (Machine()->in_tool_callback()) {
    Machine()->note_violation("cuptiActivityFlushAll called from a callback");
    return LastCuptiError() = CUPTI_ERROR_INVALID_OPERATION;
  }
  BurnMoreCpuEachTime();
  FlushBuffers((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

struct Attribute {
  CUpti_ActivityAttribute id;
  size_t bytes;
  uint64_t value;
};

Attribute g_attributes[] = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof(size_t), 3'200'000},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, sizeof(size_t), 8'388'608},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, sizeof(size_t), 25'000},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof(uint8_t), 1},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS, sizeof(size_t), 1'048'576},
};

Attribute* FindAttribute(CUpti_ActivityAttribute id) {
  for (Attribute& attribute : g_attributes) {
    if (attribute.id == id) return &attribute;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  RETURN_UNLESS(AdmitFirstApi);
  return Enable(kind, false);
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  RETURN_UNLESS(AdmitFirstApi);
  return Enable(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  RETURN_UNLESS(AdmitFirstApi);
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || static_cast<uint32_t>(kind) >= kMostKinds) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_KIND;
  }
  ForgetChosenCalls(kind);
  const bool was_on = TheSubscription().kind_enabled[kind].exchange(false);
  const bool is_api = kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (was_on && is_api) TheSubscription().api_kinds_off.fetch_add(1);
  return CUPTI_SUCCESS;
}

// Per context: not told apart, the kind is on everywhere.
CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  RETURN_UNLESS(AdmitFirstApi);
  if (Machine()->context_id(context) == 0) return CUPTI_ERROR_INVALID_CONTEXT;
  return Enable(kind, false);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  RETURN_UNLESS(AdmitFirstApi);
  return EnableApi(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  RETURN_UNLESS(AdmitFirstApi);
  return EnableApi(CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  // The real library accepts this without a driver.
  if (Machine() != nullptr) RETURN_UNLESS(AdmitFirstApi);
  SetBufferCallbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  RETURN_UNLESS_ADMITTED();
  return Flush(flag);
}

CUptiResult cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
  RETURN_UNLESS_ADMITTED();
  return Flush(flag);
}

CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms) {
  RETURN_UNLESS_ADMITTED();
  SetFlushPeriod(period_ms);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  RETURN_UNLESS(AdmitFirstApi);
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = TakeDroppedRecords(FirstApiBuffers());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (Script().one_api && TheSubscription().second_api.load(std::memory_order_relaxed)) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  uint8_t* at = buffer;
  if (*record != nullptr) {
    at = reinterpret_cast<uint8_t*>(*record);
    at += RecordSize((*record)->kind);
  }
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(at);
  if (RecordSize(next->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  RETURN_UNLESS(AdmitFirstApi);
  const Attribute* attribute = FindAttribute(id);
  if (attribute == nullptr || bytes == nullptr || value == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  memcpy(value, &attribute->value, attribute->bytes);
  *bytes = attribute->bytes;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute id, size_t* bytes, void* value) {
  RETURN_UNLESS(AdmitFirstApi);
  Attribute* attribute = FindAttribute(id);
  if (attribute == nullptr || bytes == nullptr || value == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (*bytes < attribute->bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  if (id == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER &&
      KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
    Machine()->note_violation("PER_THREAD_ACTIVITY_BUFFER set in the middle of a session");
    return LastCuptiError() = CUPTI_ERROR_INVALID_OPERATION;
  }
  attribute->value = 0;
  memcpy(&attribute->value, value, attribute->bytes);
  if (id == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    SetBuffersZeroed(FirstApiBuffers(), attribute->value != 0);
  } else if (id == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) {
    SetDeviceBufferLimit(attribute->value);
  } else if (id == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    SetPerThreadBuffers(FirstApiBuffers(), attribute->value != 0);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  TheSubscription().latency_timestamps.store(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  TheSubscription().all_sync_records.store(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  TheSubscription().event_device_timestamps.store(enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t) {
  RETURN_UNLESS_ADMITTED();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllocationSource(uint8_t) {
  RETURN_UNLESS_ADMITTED();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  RETURN_UNLESS(AdmitFirstApi);
  if (type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
  TheSubscription().thread_id_type.store(type);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  RETURN_UNLESS_ADMITTED();
  *type = TheSubscription().thread_id_type.load();
  return CUPTI_SUCCESS;
}

}  // extern "C"
