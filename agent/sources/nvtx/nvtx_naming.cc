// Domains, registered strings, categories, and names of threads and CUDA objects.
// Runs on: user threads.  May not: allocate, lock, log, call NVTX, make a system call.
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/sources/nvtx/nvtx_handlers.h"
#include "agent/sources/nvtx/nvtx_names.h"

namespace ranktap::agent::nvtx {
namespace {

using proto::ArenaRef;
using proto::EntryKind;
using proto::NamedObject;
using proto::NameEvent;

// Registrations are taken at every level: the program makes them once, and uses them after the
// level has been raised. Only a fork child has no arena.
bool Alive() { return Capturing(kCaptureAlive); }

struct Named {
  NamedObject object;
  uint64_t id;
  ArenaRef domain = 0;
  uint32_t resource_type = 0;
};

void EmitName(const Named& named, ArenaRef name) {
  ThreadState* thread = ThreadState::Current();
  if (thread == nullptr) return ThreadStates::LoseWithoutWriter();
  thread->Emit(NameEvent{.time_ticks = NowTicks(),
                         .id = named.id,
                         .object = named.object,
                         .domain = named.domain,
                         .name = name,
                         .resource_type = named.resource_type});
}

void NameIt(const Named& named, const char* name) {
  if (Alive()) EmitName(named, RegisterText(EntryKind::kString, name));
}
void NameIt(const Named& named, const wchar_t* name) {
  if (Alive()) EmitName(named, RegisterWideText(EntryKind::kString, name));
}

uint64_t Word(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

}  // namespace

nvtxDomainHandle_t DomainCreateA(const char* name) {
  return ToHandle<nvtxDomainHandle_t>(Alive() ? RegisterText(EntryKind::kNvtxDomain, name)
                                              : kNoName);
}

nvtxDomainHandle_t DomainCreateW(const wchar_t* name) {
  return ToHandle<nvtxDomainHandle_t>(Alive() ? RegisterWideText(EntryKind::kNvtxDomain, name)
                                              : kNoName);
}

// Events that name the domain are still on their way.
void DomainDestroy(nvtxDomainHandle_t) {}

nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return ToHandle<nvtxStringHandle_t>(Alive() ? RegisterText(EntryKind::kString, text) : kNoName);
}

nvtxStringHandle_t DomainRegisterStringW(nvtxDomainHandle_t, const wchar_t* text) {
  return ToHandle<nvtxStringHandle_t>(Alive() ? RegisterWideText(EntryKind::kString, text)
                                              : kNoName);
}

void NameCategoryA(uint32_t category, const char* name) {
  NameIt({.object = NamedObject::kCategory, .id = category}, name);
}
void NameCategoryW(uint32_t category, const wchar_t* name) {
  NameIt({.object = NamedObject::kCategory, .id = category}, name);
}
void DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  NameIt({.object = NamedObject::kCategory, .id = category, .domain = FromHandle(domain)}, name);
}
void DomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category, const wchar_t* name) {
  NameIt({.object = NamedObject::kCategory, .id = category, .domain = FromHandle(domain)}, name);
}
void NameOsThreadA(uint32_t thread, const char* name) {
  NameIt({.object = NamedObject::kThread, .id = thread}, name);
}
void NameOsThreadW(uint32_t thread, const wchar_t* name) {
  NameIt({.object = NamedObject::kThread, .id = thread}, name);
}

nvtxResourceHandle_t DomainResourceCreate(nvtxDomainHandle_t domain,
                                          nvtxResourceAttributes_t* resource) {
  if (resource == nullptr) return ToHandle<nvtxResourceHandle_t>(kNoName);
  const Named named{.object = NamedObject::kResource,
                    .id = resource->identifier.ullValue,
                    .domain = FromHandle(domain),
                    .resource_type = static_cast<uint32_t>(resource->identifierType)};
  if (resource->messageType == NVTX_MESSAGE_TYPE_ASCII) {
    NameIt(named, resource->message.ascii);
  } else if (resource->messageType == NVTX_MESSAGE_TYPE_UNICODE) {
    NameIt(named, resource->message.unicode);
  } else if (resource->messageType == NVTX_MESSAGE_TYPE_REGISTERED && Alive()) {
    EmitName(named, FromHandle(resource->message.registered));
  }
  return ToHandle<nvtxResourceHandle_t>(kNoName);
}

void DomainResourceDestroy(nvtxResourceHandle_t) {}

void Initialize(const void*) {}

void NameDeviceA(int device, const char* name) {
  NameIt({.object = NamedObject::kDevice, .id = static_cast<uint64_t>(device)}, name);
}
void NameDeviceW(int device, const wchar_t* name) {
  NameIt({.object = NamedObject::kDevice, .id = static_cast<uint64_t>(device)}, name);
}
void NameContextA(void* context, const char* name) {
  NameIt({.object = NamedObject::kContext, .id = Word(context)}, name);
}
void NameContextW(void* context, const wchar_t* name) {
  NameIt({.object = NamedObject::kContext, .id = Word(context)}, name);
}
void NameStreamA(void* stream, const char* name) {
  NameIt({.object = NamedObject::kStream, .id = Word(stream)}, name);
}
void NameStreamW(void* stream, const wchar_t* name) {
  NameIt({.object = NamedObject::kStream, .id = Word(stream)}, name);
}
void NameEventA(void* event, const char* name) {
  NameIt({.object = NamedObject::kEvent, .id = Word(event)}, name);
}
void NameEventW(void* event, const wchar_t* name) {
  NameIt({.object = NamedObject::kEvent, .id = Word(event)}, name);
}

}  // namespace ranktap::agent::nvtx
