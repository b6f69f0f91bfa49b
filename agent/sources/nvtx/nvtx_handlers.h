// The functions that NVTX's tables point to once a program is traced.
// Runs on: user threads.  May not: allocate, lock, log, call NVTX, make a system call.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

namespace ranktap::agent::nvtx {

// Ranges and marks (nvtx_ranges.cc).
void MarkEx(const nvtxEventAttributes_t* attributes);
void MarkA(const char* text);
void MarkW(const wchar_t* text);
nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* attributes);
nvtxRangeId_t RangeStartA(const char* text);
nvtxRangeId_t RangeStartW(const wchar_t* text);
void RangeEnd(nvtxRangeId_t range);
int RangePushEx(const nvtxEventAttributes_t* attributes);
int RangePushA(const char* text);
int RangePushW(const wchar_t* text);
int RangePop();
void DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes);
nvtxRangeId_t DomainRangeStartEx(nvtxDomainHandle_t domain,
                                 const nvtxEventAttributes_t* attributes);
void DomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t range);
int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes);
int DomainRangePop(nvtxDomainHandle_t domain);

// The payload extension's (nvtx_ranges.cc).
void MarkPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count);
int RangePushPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count);
int RangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count);
nvtxRangeId_t RangeStartPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads,
                                size_t count);
void RangeEndPayload(nvtxDomainHandle_t domain, nvtxRangeId_t range,
                     const nvtxPayloadData_t* payloads, size_t count);
uint8_t DomainIsEnabled(nvtxDomainHandle_t domain);

// Names (nvtx_naming.cc).
nvtxDomainHandle_t DomainCreateA(const char* name);
nvtxDomainHandle_t DomainCreateW(const wchar_t* name);
void DomainDestroy(nvtxDomainHandle_t domain);
nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t domain, const char* text);
nvtxStringHandle_t DomainRegisterStringW(nvtxDomainHandle_t domain, const wchar_t* text);
void NameCategoryA(uint32_t category, const char* name);
void NameCategoryW(uint32_t category, const wchar_t* name);
void DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name);
void DomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category, const wchar_t* name);
void NameOsThreadA(uint32_t thread, const char* name);
void NameOsThreadW(uint32_t thread, const wchar_t* name);
nvtxResourceHandle_t DomainResourceCreate(nvtxDomainHandle_t domain,
                                          nvtxResourceAttributes_t* resource);
void DomainResourceDestroy(nvtxResourceHandle_t resource);
void Initialize(const void* reserved);

// Names of CUDA objects. NVTX passes ordinals and handles; both are a word.
void NameDeviceA(int device, const char* name);
void NameDeviceW(int device, const wchar_t* name);
void NameContextA(void* context, const char* name);
void NameContextW(void* context, const wchar_t* name);
void NameStreamA(void* stream, const char* name);
void NameStreamW(void* stream, const wchar_t* name);
void NameEventA(void* event, const char* name);
void NameEventW(void* event, const wchar_t* name);

}  // namespace ranktap::agent::nvtx
