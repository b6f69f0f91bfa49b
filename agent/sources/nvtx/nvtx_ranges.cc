// Ranges and marks into the ring.
// Runs on: user threads.  May not: allocate, lock, log, call NVTX, make a system call.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "agent/core/callback_cost.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/sources/nvtx/nccl_rank.h"
#include "agent/sources/nvtx/nvtx_handlers.h"
#include "agent/sources/nvtx/nvtx_names.h"
#include "agent/sources/nvtx/nvtx_payload.h"

namespace ranktap::agent::nvtx {
namespace {

using proto::ArenaRef;
using proto::MarkEvent;
using proto::NvtxAttributes;
using proto::RangeEndEvent;
using proto::RangePopEvent;
using proto::RangePushEvent;
using proto::RangeStartEvent;

// Push and pop return this when no tool is there: a program that prints its nesting level prints
// the same with us.
constexpr int kNotTracked = NVTX_NO_PUSH_POP_TRACKING;

// Counts up over the process: NVTX wants ids that are unique among all ranges.
constinit std::atomic<uint64_t> g_next_range{1};

// The thread to record on, or nullptr: capture is off, or the event is counted as lost.
[[gnu::always_inline]] inline ThreadState* Enter() {
  if (!Capturing(kCaptureRanges)) return nullptr;
  ThreadState* thread = ThreadState::Current();
  if (thread == nullptr) [[unlikely]] {
    ThreadStates::LoseWithoutWriter();
    return nullptr;
  }
  return thread;
}

// Attributes of any version: what lies beyond the struct the caller knew is 0. `copy` is used only
// for a shorter one (copying each cost 5 ns a range).
const nvtxEventAttributes_t& Known(const nvtxEventAttributes_t* given,
                                   nvtxEventAttributes_t& copy) {
  if (given != nullptr && given->size >= sizeof(copy)) [[likely]]
    return *given;
  copy = {};
  if (given != nullptr) std::memcpy(&copy, given, given->size);
  return copy;
}

template <typename Event>
[[gnu::always_inline]] inline void EmitNamed(ThreadState& thread, Event event,
                                             const EventName& name,
                                             std::span<const std::byte> payload = {}) {
  event.nvtx.name = name.ref;
  if (name.inline_text.empty() && payload.empty()) [[likely]]
    return thread.Emit(event);
  thread.EmitWith(event, std::as_bytes(std::span(name.inline_text)), payload);
}

template <typename Event>
[[gnu::noinline]] void EmitWithPayloads(ThreadState& thread, Event event, const EventName& name,
                                        std::span<const nvtxPayloadData_t> payloads) {
  NoteNcclRank(payloads);
  PayloadBlob blob;
  blob.Append(payloads);
  event.nvtx.payload_type = proto::kNvtxSchemaPayload;
  event.nvtx.payload = 0;
  event.nvtx.payload_dropped = blob.dropped();
  EmitNamed(thread, event, name, blob.bytes());
}

template <typename Event>
[[gnu::always_inline]] inline void EmitEx(ThreadState& thread, Event event,
                                          nvtxDomainHandle_t domain,
                                          const nvtxEventAttributes_t* given) {
  nvtxEventAttributes_t copy;
  const nvtxEventAttributes_t& attributes = Known(given, copy);
  const EventName name = NameOf(thread, attributes);
  event.nvtx.domain = FromHandle(domain);
  event.nvtx.category = attributes.category;
  event.nvtx.color = attributes.colorType == NVTX_COLOR_ARGB ? attributes.color : 0;
  event.nvtx.payload_type = static_cast<uint32_t>(attributes.payloadType);
  if (event.nvtx.payload_type == proto::kNvtxSchemaPayload) [[unlikely]] {
    return EmitWithPayloads(thread, event, name, ExtendedPayloads(attributes));
  }
  event.nvtx.payload = attributes.payload.ullValue;
  EmitNamed(thread, event, name);
}

[[gnu::noinline]] void PushNewText(ThreadState& thread, uint64_t now, const char* text) {
  RangePushEvent event{.time_ticks = now};
  const EventName name = NameOfPushedText(thread, text, event.nvtx);
  EmitNamed(thread, event, name);
}

// The usual way of a hook: the thread to record on, where there is nothing to do but to write.
// nullptr: take the long way, out of line (TicksAreTsc).
[[gnu::always_inline]] inline ThreadState* EnterQuickly() {
  ThreadState* const thread = ThreadState::Existing();
  return thread != nullptr && TicksAreTsc() ? thread : nullptr;
}

[[gnu::noinline]] int PushText(const char* text) {
  ThreadState* thread = Enter();
  if (thread == nullptr) return kNotTracked;
  const uint64_t now = NowTicks();
  const CallbackCost cost(*thread, now);
  if (const ArenaRef name = thread->names.Find(text)) {
    thread->Emit(RangePushEvent{.time_ticks = now, .nvtx = {.name = name}});
  } else {
    PushNewText(*thread, now, text);
  }
  return kNotTracked;
}

[[gnu::noinline]] int PushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  ThreadState* thread = Enter();
  if (thread == nullptr) return kNotTracked;
  const uint64_t now = NowTicks();
  const CallbackCost cost(*thread, now);
  EmitEx(*thread, RangePushEvent{.time_ticks = now}, domain, attributes);
  return kNotTracked;
}

[[gnu::noinline]] int Pop(nvtxDomainHandle_t domain) {
  if (ThreadState* thread = Enter()) {
    thread->Emit(RangePopEvent{.time_ticks = NowTicks(), .domain = FromHandle(domain)});
  }
  return kNotTracked;
}

// Of names only registered ones: to compare a text here as well took each its registers.
[[gnu::always_inline]] inline int PushExQuickly(nvtxDomainHandle_t domain,
                                                const nvtxEventAttributes_t* given) {
  if (!Capturing(kCaptureRanges)) return kNotTracked;
  ThreadState* const thread = EnterQuickly();
  if (thread == nullptr || CallbackCost::IsDue(*thread) || given == nullptr ||
      given->size < sizeof(*given) || given->messageType != NVTX_MESSAGE_TYPE_REGISTERED ||
      static_cast<uint32_t>(given->payloadType) == proto::kNvtxSchemaPayload) [[unlikely]] {
    return PushEx(domain, given);
  }
  const RangePushEvent event{
      .time_ticks = ReadTsc(),
      .nvtx = {.domain = FromHandle(domain),
               .name = FromHandle(given->message.registered),
               .payload = given->payload.ullValue,
               .category = given->category,
               .color = given->colorType == NVTX_COLOR_ARGB ? given->color : 0,
               .payload_type = static_cast<uint32_t>(given->payloadType)}};
  if (!thread->TryEmit(event)) [[unlikely]]
    return PushEx(domain, given);
  return kNotTracked;
}

[[gnu::always_inline]] inline int PopQuickly(nvtxDomainHandle_t domain) {
  if (!Capturing(kCaptureRanges)) return kNotTracked;
  ThreadState* const thread = EnterQuickly();
  if (thread == nullptr ||
      !thread->TryEmit(RangePopEvent{.time_ticks = ReadTsc(), .domain = FromHandle(domain)}))
      [[unlikely]] {
    return Pop(domain);
  }
  return kNotTracked;
}

std::span<const nvtxPayloadData_t> Span(const nvtxPayloadData_t* payloads, size_t count) {
  return payloads == nullptr ? std::span<const nvtxPayloadData_t>{} : std::span(payloads, count);
}

}  // namespace

int RangePushA(const char* text) {
  if (!Capturing(kCaptureRanges)) return kNotTracked;
  ThreadState* const thread = EnterQuickly();
  if (thread == nullptr || CallbackCost::IsDue(*thread)) [[unlikely]]
    return PushText(text);
  const uint64_t now = ReadTsc();
  const ArenaRef name = thread->names.FindQuickly(text);
  if (name == 0 || !thread->TryEmit(RangePushEvent{.time_ticks = now, .nvtx = {.name = name}}))
      [[unlikely]] {
    return PushText(text);
  }
  return kNotTracked;
}

int RangePushW(const wchar_t* text) {
  ThreadState* thread = Enter();
  if (thread == nullptr) return kNotTracked;
  EmitNamed(*thread, RangePushEvent{.time_ticks = NowTicks()}, NameOfWideText(text));
  return kNotTracked;
}

int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return PushExQuickly(domain, attributes);
}

int RangePushEx(const nvtxEventAttributes_t* attributes) {
  return PushExQuickly(nullptr, attributes);
}

int DomainRangePop(nvtxDomainHandle_t domain) { return PopQuickly(domain); }

int RangePop() { return PopQuickly(nullptr); }

nvtxRangeId_t DomainRangeStartEx(nvtxDomainHandle_t domain,
                                 const nvtxEventAttributes_t* attributes) {
  const uint64_t range = g_next_range.fetch_add(1, std::memory_order_relaxed);
  if (ThreadState* thread = Enter()) {
    EmitEx(*thread, RangeStartEvent{.time_ticks = NowTicks(), .range = range}, domain, attributes);
  }
  return range;
}

nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* attributes) {
  return DomainRangeStartEx(nullptr, attributes);
}

nvtxRangeId_t RangeStartA(const char* text) {
  const uint64_t range = g_next_range.fetch_add(1, std::memory_order_relaxed);
  if (ThreadState* thread = Enter()) {
    EmitNamed(*thread, RangeStartEvent{.time_ticks = NowTicks(), .range = range},
              NameOfText(*thread, text));
  }
  return range;
}

nvtxRangeId_t RangeStartW(const wchar_t* text) {
  const uint64_t range = g_next_range.fetch_add(1, std::memory_order_relaxed);
  if (ThreadState* thread = Enter()) {
    EmitNamed(*thread, RangeStartEvent{.time_ticks = NowTicks(), .range = range},
              NameOfWideText(text));
  }
  return range;
}

void RangeEnd(nvtxRangeId_t range) {
  if (ThreadState* thread = Enter()) {
    thread->Emit(RangeEndEvent{.time_ticks = NowTicks(), .range = range});
  }
}

void DomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t range) { RangeEnd(range); }

void DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  if (ThreadState* thread = Enter()) {
    EmitEx(*thread, MarkEvent{.time_ticks = NowTicks()}, domain, attributes);
  }
}

void MarkEx(const nvtxEventAttributes_t* attributes) { DomainMarkEx(nullptr, attributes); }

void MarkA(const char* text) {
  if (ThreadState* thread = Enter()) {
    EmitNamed(*thread, MarkEvent{.time_ticks = NowTicks()}, NameOfText(*thread, text));
  }
}

void MarkW(const wchar_t* text) {
  if (ThreadState* thread = Enter()) {
    EmitNamed(*thread, MarkEvent{.time_ticks = NowTicks()}, NameOfWideText(text));
  }
}

void MarkPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
  if (ThreadState* thread = Enter()) {
    MarkEvent event{.time_ticks = NowTicks()};
    event.nvtx.domain = FromHandle(domain);
    EmitWithPayloads(*thread, event, {}, Span(payloads, count));
  }
}

int RangePushPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
  if (ThreadState* thread = Enter()) {
    RangePushEvent event{.time_ticks = NowTicks()};
    event.nvtx.domain = FromHandle(domain);
    EmitWithPayloads(*thread, event, {}, Span(payloads, count));
  }
  return kNotTracked;
}

int RangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
  // At every level: a rank is known before anybody asks for events.
  NoteNcclRank(Span(payloads, count));
  if (ThreadState* thread = Enter()) {
    const uint64_t now = NowTicks();
    PayloadBlob blob;
    blob.Append(Span(payloads, count));
    thread->EmitWith(RangePopEvent{.time_ticks = now, .domain = FromHandle(domain)}, {},
                     blob.bytes());
  }
  return kNotTracked;
}

nvtxRangeId_t RangeStartPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads,
                                size_t count) {
  const uint64_t range = g_next_range.fetch_add(1, std::memory_order_relaxed);
  if (ThreadState* thread = Enter()) {
    RangeStartEvent event{.time_ticks = NowTicks(), .range = range};
    event.nvtx.domain = FromHandle(domain);
    EmitWithPayloads(*thread, event, {}, Span(payloads, count));
  }
  return range;
}

void RangeEndPayload(nvtxDomainHandle_t, nvtxRangeId_t range, const nvtxPayloadData_t* payloads,
                     size_t count) {
  if (ThreadState* thread = Enter()) {
    const uint64_t now = NowTicks();
    PayloadBlob blob;
    blob.Append(Span(payloads, count));
    thread->EmitWith(RangeEndEvent{.time_ticks = now, .range = range}, {}, blob.bytes());
  }
}

// Always 1: what is not captured now may be a second later, and a program asks once.
uint8_t DomainIsEnabled(nvtxDomainHandle_t) { return 1; }

}  // namespace ranktap::agent::nvtx
