#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtSync.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tests/workloads/hosts/nvtx_everything.h"

namespace {

nvtxEventAttributes_t Attributes(const char* message, uint32_t color, uint32_t category) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = category;
  attributes.colorType = color == 0 ? NVTX_COLOR_UNKNOWN : NVTX_COLOR_ARGB;
  attributes.color = color;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = message;
  return attributes;
}

void CheckLevel(NvtxCounts& counts, int got, int wanted) {
  if (got != wanted && got != NVTX_NO_PUSH_POP_TRACKING) ++counts.levels_wrong;
}

// One mark for every type of payload.
void MarkWithPayloads(NvtxCounts& counts, nvtxDomainHandle_t domain) {
  nvtxEventAttributes_t attributes = Attributes("payload", 0, 0);
  const int types[] = {NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, NVTX_PAYLOAD_TYPE_INT64,
                       NVTX_PAYLOAD_TYPE_DOUBLE,         NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
                       NVTX_PAYLOAD_TYPE_INT32,          NVTX_PAYLOAD_TYPE_FLOAT};
  for (int type : types) {
    attributes.payloadType = type;
    std::memset(&attributes.payload, 0, sizeof attributes.payload);
    if (type == NVTX_PAYLOAD_TYPE_DOUBLE) attributes.payload.dValue = -2.5;
    if (type == NVTX_PAYLOAD_TYPE_FLOAT) attributes.payload.fValue = 0.25f;
    if (type == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) attributes.payload.ullValue = UINT64_MAX;
    if (type == NVTX_PAYLOAD_TYPE_INT64) attributes.payload.llValue = INT64_MIN;
    if (type == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32) attributes.payload.uiValue = UINT32_MAX;
    if (type == NVTX_PAYLOAD_TYPE_INT32) attributes.payload.iValue = -7;
    if (domain == nullptr) {
      nvtxMarkEx(&attributes);
    } else {
      nvtxDomainMarkEx(domain, &attributes);
    }
    ++counts.marks;
  }
}

void UseResources(nvtxDomainHandle_t domain) {
  nvtxResourceAttributes_t resource{};
  resource.version = NVTX_VERSION;
  resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
  resource.identifier.pValue = domain;
  resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
  resource.message.ascii = "resource";
  nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &resource);
  nvtxDomainResourceDestroy(handle);

  nvtxSyncUserAttributes_t lock{};
  lock.version = NVTX_VERSION;
  lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
  lock.messageType = NVTX_MESSAGE_TYPE_ASCII;
  lock.message.ascii = "lock";
  nvtxSyncUser_t user = nvtxDomainSyncUserCreate(domain, &lock);
  nvtxDomainSyncUserAcquireStart(user);
  nvtxDomainSyncUserAcquireFailed(user);
  nvtxDomainSyncUserAcquireStart(user);
  nvtxDomainSyncUserAcquireSuccess(user);
  nvtxDomainSyncUserReleasing(user);
  nvtxDomainSyncUserDestroy(user);
}

}  // namespace

void UseCore(NvtxCounts& counts, int round) {
  nvtxInitialize(nullptr);
  nvtxMarkA("mark");
  nvtxMarkW(L"wide mark \u00e9\u4e2d\U0001f680");
  counts.marks += 2;
  MarkWithPayloads(counts, nullptr);

  nvtxEventAttributes_t attributes = Attributes("pushed with attributes", 0xff00ff00, 2);
  CheckLevel(counts, nvtxRangePushA("outer"), 0);
  CheckLevel(counts, nvtxRangePushW(L"wide"), 1);
  CheckLevel(counts, nvtxRangePushEx(&attributes), 2);
  for (int level = 2; level >= 0; --level) CheckLevel(counts, nvtxRangePop(), level);
  counts.push_pop += 3;
  if (int level = nvtxRangePop(); level >= 0) ++counts.levels_wrong;

  nvtxRangeId_t ranges[] = {nvtxRangeStartA("started"), nvtxRangeStartW(L"started wide"),
                            nvtxRangeStartEx(&attributes)};
  nvtxRangeEnd(ranges[1]);
  nvtxRangeEnd(ranges[0]);
  std::thread([&] { nvtxRangeEnd(ranges[2]); }).join();
  counts.start_end += 3;
  (void)round;
}

void UseDomains(NvtxCounts& counts, int round) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("everything");
  nvtxDomainHandle_t wide = nvtxDomainCreateW(L"everything wide");
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxStringHandle_t registered_wide = nvtxDomainRegisterStringW(domain, L"registered wide");
  nvtxDomainNameCategoryA(domain, 5, "category five");
  nvtxDomainNameCategoryW(domain, 6, L"category six");
  MarkWithPayloads(counts, domain);

  nvtxEventAttributes_t attributes = Attributes(nullptr, 0xffff0000, 5);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = registered;
  CheckLevel(counts, nvtxDomainRangePushEx(domain, &attributes), 0);
  attributes.message.registered = registered_wide;
  CheckLevel(counts, nvtxDomainRangePushEx(domain, &attributes), 1);
  CheckLevel(counts, nvtxDomainRangePop(domain), 1);
  CheckLevel(counts, nvtxDomainRangePop(domain), 0);
  attributes = Attributes("in the wide domain", 0, 0);
  CheckLevel(counts, nvtxDomainRangePushEx(wide, &attributes), 0);
  CheckLevel(counts, nvtxDomainRangePop(wide), 0);
  counts.push_pop += 3;
  nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &attributes);
  nvtxDomainRangeEnd(domain, range);
  ++counts.start_end;

  UseResources(domain);
  nvtxDomainDestroy(wide);
  nvtxDomainDestroy(domain);
  (void)round;
}

void UseNaming() {
  auto thread = static_cast<uint32_t>(syscall(SYS_gettid));
  nvtxNameCategoryA(2, "category two");
  nvtxNameCategoryW(3, L"category three");
  nvtxNameOsThreadA(thread, "the only thread");
  nvtxNameOsThreadW(thread, L"the only thread, wide");
  // Names for handles that no driver has given out: a tool may only note them down.
  nvtxNameCuDeviceA(1, "device by driver");
  nvtxNameCuDeviceW(1, L"device by driver, wide");
  nvtxNameCuContextA(reinterpret_cast<CUcontext>(0x10), "context");
  nvtxNameCuContextW(reinterpret_cast<CUcontext>(0x10), L"context, wide");
  nvtxNameCuStreamA(reinterpret_cast<CUstream>(0x20), "stream by driver");
  nvtxNameCuStreamW(reinterpret_cast<CUstream>(0x20), L"stream by driver, wide");
  nvtxNameCuEventA(reinterpret_cast<CUevent>(0x30), "event by driver");
  nvtxNameCuEventW(reinterpret_cast<CUevent>(0x30), L"event by driver, wide");
  nvtxNameCudaDeviceA(1, "device");
  nvtxNameCudaDeviceW(1, L"device, wide");
  nvtxNameCudaStreamA(reinterpret_cast<cudaStream_t>(0x20), "stream");
  nvtxNameCudaStreamW(reinterpret_cast<cudaStream_t>(0x20), L"stream, wide");
  nvtxNameCudaEventA(reinterpret_cast<cudaEvent_t>(0x30), "event");
  nvtxNameCudaEventW(reinterpret_cast<cudaEvent_t>(0x30), L"event, wide");
}
