// Calls, resources and buffers.
// Runs on: user threads, inside CUDA calls.  May not: allocate, lock, log, call CUDA.
#include "agent/sources/cupti/cupti_callbacks.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include "agent/core/callback_cost.h"
#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_resources.h"
#include "agent/stacks/stack_capture.h"
#include "proto/events.h"

namespace ranktap::agent::cupti {

constinit CallbackState g_callbacks;

namespace {

using proto::ApiCallEvent;
using proto::EventCallEvent;
using proto::Loss;
using proto::ResourceEvent;

using stacks::StackSite;

constexpr std::optional<StackSite> StackSiteOf(CallGroup group) {
  switch (group) {
    case CallGroup::kLaunch:
    case CallGroup::kGraphLaunch:
    case CallGroup::kHostFunction:
      return StackSite::kLaunch;
    case CallGroup::kSynchronize:
      return StackSite::kSynchronize;
    case CallGroup::kAllocate:
      return StackSite::kAllocate;
    case CallGroup::kCopy:
      return StackSite::kCopy;
    case CallGroup::kEvent:
    case CallGroup::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

// 0: none taken here. The kernel's name tells apart launches that have the same stack pointer;
// CUPTI promises one for launches of kernels only, else it may be anything.
proto::ArenaRef StackOf(ThreadState& thread, const ApiCallbackData& data, const Call& call) {
  const std::optional<StackSite> site = StackSiteOf(call.group);
  if (!site) return 0;
  const uintptr_t kernel =
      call.group == CallGroup::kLaunch ? reinterpret_cast<uintptr_t>(data.symbol_name) : 0;
  return stacks::CaptureStack(thread, *site, kernel != 0 ? kernel : call.api);
}

// One writer: no locked instruction.
void AddOne(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

int32_t StatusOf(const ApiCallbackData& data) {
  return data.return_value == nullptr ? 0 : *data.return_value;
}

// Writes the call as one event once it returns.
void EmitCall(ThreadState& thread, const ApiCallbackData& data, const Call& call,
              uint64_t start_ticks, uint64_t end_ticks) {
  const int32_t status = StatusOf(data);
  if (call.arguments == EventArguments::kNone) {
    return thread.Emit(ApiCallEvent{.start_ticks = start_ticks,
                                    .end_ticks = end_ticks,
                                    .correlation = data.correlation_id,
                                    .api = call.api,
                                    .status = status,
                                    .stack = StackOf(thread, data, call)});
  }
  // Pollers ask 1e5 to 1e6 times a second (NCCL's watchdog, PyTorch's pinned allocator, XLA).
  if (status == kNotReady && call.arguments == EventArguments::kEvent) return AddOne(thread.polls);
  EventCallEvent event{.start_ticks = start_ticks,
                       .end_ticks = end_ticks,
                       .correlation = data.correlation_id,
                       .api = call.api,
                       .status = status};
  if (call.arguments == EventArguments::kStreamEvent) {
    const auto* arguments = static_cast<const StreamEventParams*>(data.function_params);
    event.stream = arguments->stream;
    event.event = arguments->event;
  } else {
    const auto* arguments = static_cast<const EventStreamParams*>(data.function_params);
    event.event = arguments->event;
    if (call.arguments == EventArguments::kEventStream) event.stream = arguments->stream;
  }
  thread.Emit(event);
}

// A thread's first call of a time of capture. Without ids (CheckCorrelation) it is 1, before all.
[[gnu::noinline]] void NoteFirstCall(uint32_t correlation) {
  const uint32_t id = correlation == 0 ? 1 : correlation;
  uint32_t first = g_callbacks.first_correlation.load(std::memory_order_relaxed);
  while (
      (first == 0 || static_cast<int32_t>(id - first) < 0) &&
      !g_callbacks.first_correlation.compare_exchange_weak(first, id, std::memory_order_relaxed)) {
  }
}

// The depth inside of a call of the runtime's, which calls the driver's: of a pair we keep the
// outer one.
constexpr uint32_t kInsideRuntime = uint32_t{1} << 31;

// A runtime call is never inside another one, so it also mends a depth that a call left behind by
// longjmp has spoilt.
[[gnu::always_inline]] inline bool IsOutermost(ThreadState& thread, Domain domain, Site site) {
  if (domain == Domain::kRuntime) {
    thread.api_depth = site == Site::kEnter ? kInsideRuntime : 0;
    return true;
  }
  if (thread.api_depth >= kInsideRuntime) return false;
  if (site == Site::kEnter) return thread.api_depth++ == 0;
  return thread.api_depth != 0 && --thread.api_depth == 0;
}

// False: the call began before the epoch, and the thread's first one is still to come.
bool IsOfEpoch(ThreadState& thread, Site site, uint32_t correlation) {
  const uint32_t epoch = g_callbacks.epoch.load(std::memory_order_relaxed);
  if (thread.api_epoch != epoch) [[unlikely]] {
    thread.CloseCall();
    if (site == Site::kExit) return false;
    thread.api_epoch = epoch;
    thread.api_depth = 0;
    NoteFirstCall(correlation);
  }
  return true;
}

// For what is waited for at a window's end (Drain::CompleteWindow), and what the process must leave
// with CUPTI at its own (Drain::DeclareHeld). CUPTI makes no record of a launch that was refused or
// put into a graph.
[[gnu::always_inline]] inline void CountLaunch(ThreadState& thread, const ApiCallbackData& data,
                                               CallGroup group, int32_t status,
                                               uint64_t start_ticks) {
  thread.last_correlation.store(data.correlation_id, std::memory_order_relaxed);
  if (group != CallGroup::kLaunch && group != CallGroup::kGraphLaunch) return;
  const bool is_captured = thread.last_node_ticks >= start_ticks;
  if (status != 0 || is_captured) return;
  thread.last_launch.store(data.correlation_id, std::memory_order_relaxed);
  AddOne(group == CallGroup::kLaunch ? thread.launches : thread.graph_launches);
}

void EmitAndCount(ThreadState& thread, const ApiCallbackData& data, const Call& call,
                  uint64_t start_ticks, uint64_t end_ticks) {
  EmitCall(thread, data, call, start_ticks, end_ticks);
  // Once for each refresh: a wake is a system call.
  if (stacks::TakeModulesWanted()) [[unlikely]]
    g_callbacks.buffers->Wake();
  const bool is_launch = call.group == CallGroup::kLaunch || call.group == CallGroup::kGraphLaunch;
  if (is_launch && data.correlation_id == 0 && g_callbacks.wants_correlation != nullptr &&
      !g_callbacks.wants_correlation->exchange(true, std::memory_order_relaxed)) {
    g_callbacks.buffers->Wake();
  }
  CountLaunch(thread, data, call.group, StatusOf(data), start_ticks);
}

void OnApiCall(Domain domain, uint32_t cbid, const ApiCallbackData& data) {
  const Call& call = g_callbacks.calls->Find(domain, cbid);
  if (call.group == CallGroup::kNone) return;
  ThreadState* thread = ThreadState::Current();
  if (thread == nullptr) {
    if (data.site == Site::kExit) ThreadStates::LoseWithoutWriter();
    return;
  }
  if (!IsOfEpoch(*thread, data.site, data.correlation_id) ||
      !IsOutermost(*thread, domain, data.site)) {
    return;
  }
  const uint64_t now = NowTicks();
  const CallbackCost cost(*thread, now);
  if (data.site == Site::kEnter) {
    return thread->OpenCall(now, call.api, data.correlation_id);
  }
  // Not where capture began inside the call. CUPTI's own word for a call (correlationData) is the
  // program's client's: of several subscribers nobody says whose it is.
  if (!thread->IsInside(call.api)) return;
  const uint64_t start = thread->open_since();
  thread->CloseCall();
  if (thread->IsGuarded()) return thread->Lose(Loss::kNested);
  EmitAndCount(*thread, data, call, start, now);
}

void OnResource(ResourceCbid cbid, const ResourceData& data) {
  if (cbid == ResourceCbid::kCuInitFinished) return;
  ThreadState* thread = ThreadState::Current();
  if (thread == nullptr) return ThreadStates::LoseWithoutWriter();
  ResourceEvent event{};
  event.time_ticks = NowTicks();
  if (cbid == ResourceCbid::kGraphNodeCreated) thread->last_node_ticks = event.time_ticks;
  {
    // CUPTI calls of ours, which must not show.
    const ReentryGuard guard(*thread);
    if (!guard.entered() || !DescribeResource(cbid, data, event)) return;
  }
  thread->Emit(event);
}

// CUPTI calls cuptiFinalize once this returns.
void OnState(uint32_t cbid, const StateData& data) {
  if (cbid == kStateError) g_callbacks.error.store(data.result);
  if (cbid != kStateFatalError || g_callbacks.ending.exchange(true)) return;
  const char* const message = data.message != nullptr ? data.message : "no message";
  std::strncpy(g_callbacks.last_words.data(), message, g_callbacks.last_words.size() - 1);
  g_callbacks.ended.store(true, std::memory_order_release);
  g_callbacks.buffers->Wake();
}

bool IsApiDomain(uint32_t domain) {
  return domain == static_cast<uint32_t>(Domain::kDriver) ||
         domain == static_cast<uint32_t>(Domain::kRuntime);
}

// What may make system calls or meet a failure of ours.
template <typename Body>
void Undisturbed(Body&& body) {
  const int saved_errno = errno;
  (void)Contain(false, [&body] { return body(), true; });
  errno = saved_errno;
}

[[gnu::noinline]] void RecordOurs(uint32_t domain, uint32_t cbid, const void* data) {
  if (!Capturing(kCaptureCuda)) return;
  Undisturbed([=] {
    // Calls of other domains come too, once the program's client has asked for them.
    if (IsApiDomain(domain)) {
      OnApiCall(static_cast<Domain>(domain), cbid, *static_cast<const ApiCallbackData*>(data));
    } else if (domain == static_cast<uint32_t>(Domain::kResource)) {
      OnResource(static_cast<ResourceCbid>(cbid), *static_cast<const ResourceData*>(data));
    } else if (domain == static_cast<uint32_t>(Domain::kState)) {
      OnState(cbid, *static_cast<const StateData*>(data));
    }
  });
}

[[gnu::noinline]] void RecordEnd(ThreadState& thread, const ApiCallbackData& data, const Call& call,
                                 uint64_t start_ticks, uint64_t end_ticks) {
  Undisturbed([&] { EmitAndCount(thread, data, call, start_ticks, end_ticks); });
}

// RecordOurs as far as it is writes alone, without a call (TicksAreTsc): the usual way of a launch.
[[gnu::always_inline]] inline void RecordQuickly(uint32_t domain_id, uint32_t cbid,
                                                 const void* given) {
  if (!Capturing(kCaptureCuda)) return;
  ThreadState* const thread = IsApiDomain(domain_id) ? ThreadState::Existing() : nullptr;
  if (thread == nullptr || !TicksAreTsc() ||
      thread->api_epoch != g_callbacks.epoch.load(std::memory_order_relaxed)) [[unlikely]] {
    return RecordOurs(domain_id, cbid, given);
  }
  const auto domain = static_cast<Domain>(domain_id);
  // Two of the four callbacks of a launch end here.
  if (domain == Domain::kDriver && thread->api_depth >= kInsideRuntime) return;
  const auto& data = *static_cast<const ApiCallbackData*>(given);
  const Call& call = g_callbacks.calls->Find(domain, cbid);
  const bool takes_long =
      call.group == CallGroup::kNone || CallbackCost::IsDue(*thread) ||
      (data.site == Site::kExit &&
       (call.arguments != EventArguments::kNone || data.correlation_id == 0 || thread->HasGuard() ||
        stacks::g_stack_sites.load(std::memory_order_relaxed) != 0));
  if (takes_long) [[unlikely]]
    return RecordOurs(domain_id, cbid, given);
  if (!IsOutermost(*thread, domain, data.site)) return;
  const uint64_t now = ReadTsc();
  if (data.site == Site::kEnter) return thread->OpenCall(now, call.api, data.correlation_id);
  if (!thread->IsInside(call.api)) return;
  const uint64_t start = thread->open_since();
  const int32_t status = StatusOf(data);
  thread->CloseCall();
  if (!thread->TryEmit(ApiCallEvent{.start_ticks = start,
                                    .end_ticks = now,
                                    .correlation = data.correlation_id,
                                    .api = call.api,
                                    .status = status})) [[unlikely]] {
    return RecordEnd(*thread, data, call, start, now);
  }
  CountLaunch(*thread, data, call.group, status, start);
}

// For the program's own client too, around ours.
[[gnu::noinline]] void RecordForTwo(uint32_t domain, uint32_t cbid, const void* data) {
  const bool ends =
      IsApiDomain(domain) && static_cast<const ApiCallbackData*>(data)->site == Site::kExit;
  if (!ends) broker::TellClient(domain, cbid, data);
  if (broker::IsOurs(domain, cbid)) RecordOurs(domain, cbid, data);
  if (ends) broker::TellClient(domain, cbid, data);
}

}  // namespace

void OnCallback(void*, uint32_t domain, uint32_t cbid, const void* data) {
  if (broker::ClientListens(domain)) [[unlikely]]
    return RecordForTwo(domain, cbid, data);
  RecordQuickly(domain, cbid, data);
}

void OnBufferRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  // A thread that makes events is the program's: it has the records of its own calls alone.
  const bool large = g_callbacks.large_buffers.load(std::memory_order_relaxed) &&
                     ThreadState::Existing() == nullptr;
  *buffer = g_callbacks.buffers->TakeFree(bytes, large);
  *max_records = 0;
}

void OnBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                       size_t valid_bytes) {
  const BufferCompleted strangers = g_callbacks.strangers.load(std::memory_order_relaxed);
  if (strangers != nullptr && !g_callbacks.buffers->Owns(buffer)) {
    return strangers(context, stream, buffer, bytes, valid_bytes);
  }
  const int saved_errno = errno;
  g_callbacks.buffers->Complete(buffer, valid_bytes, context);
  errno = saved_errno;
}

}  // namespace ranktap::agent::cupti
