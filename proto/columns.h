// How each event kind becomes columns: the one table that the encoder, the decoder and the tests
// read. A row names a protobuf field of the kind's message in ranktap/v1/events.proto, how its
// values are written, and the struct member they come from.
//
// On the wire a column is a packed field with as many elements as there are events, or fewer:
//   absent         every value is 0
//   1 element      every value is that one
//   2 elements     (delta columns of 3 and more) first value, then one common difference
// Field 1 of every section is the number of events.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "proto/events.h"
#include "proto/ring.h"

namespace ranktap::proto {

enum class Encoding : uint8_t {
  kValue,   // varint
  kSigned,  // zigzag varint
  kDelta,   // zigzag varint of the difference to the event before, the first to 0
  kRef,     // varint: the id of an arena entry, 0 none
};

// Member of Event, or member of a member: Path is applied left to right.
template <uint32_t FieldNumber, Encoding E, auto... Path>
struct Column {
  static constexpr uint32_t kField = FieldNumber;
  static constexpr Encoding kEncoding = E;

  template <typename Event>
  static uint64_t Get(const Event& event) {
    return static_cast<uint64_t>(static_cast<int64_t>(Member(event)));
  }
  template <typename Event>
  static void Set(Event& event, uint64_t value) {
    using Type = std::remove_reference_t<decltype(Member(event))>;
    Member(event) = static_cast<Type>(value);
  }

 private:
  template <typename Event>
  static auto& Member(Event& event) {
    return Follow(event, Path...);
  }
  template <typename Object, typename First, typename... Rest>
  static auto& Follow(Object& object, First first, Rest... rest) {
    if constexpr (sizeof...(rest) == 0) {
      return object.*first;
    } else {
      return Follow(object.*first, rest...);
    }
  }
};

template <uint32_t Field, auto... Path>
using Value = Column<Field, Encoding::kValue, Path...>;
template <uint32_t Field, auto... Path>
using Signed = Column<Field, Encoding::kSigned, Path...>;
template <uint32_t Field, auto... Path>
using Delta = Column<Field, Encoding::kDelta, Path...>;

template <uint32_t Field, EntryKind Kind, auto... Path>
struct Ref : Column<Field, Encoding::kRef, Path...> {
  static constexpr EntryKind kEntryKind = Kind;
};

// A span of time: the end as the distance to the start. Wraps, so that a record whose end lies
// before its start (CUPTI writes 0 when device buffers run out) survives unchanged.
template <uint32_t FieldNumber, auto End, auto Start>
struct Since {
  static constexpr uint32_t kField = FieldNumber;
  static constexpr Encoding kEncoding = Encoding::kValue;
  template <typename Event>
  static uint64_t Get(const Event& event) {
    return event.*End - event.*Start;
  }
  template <typename Event>
  static void Set(Event& event, uint64_t value) {
    event.*End = event.*Start + value;  // Start's row comes first
  }
};

// Fields of every section.
inline constexpr uint32_t kCountField = 1;
inline constexpr uint32_t kPayloadSizesField = 30;  // packed, one per event, where any is not 0
inline constexpr uint32_t kPayloadField = 31;       // all payloads, one after the other

template <typename Event>
struct EventColumns;

template <>
struct EventColumns<KernelEvent> {
  using E = KernelEvent;
  using Rows = std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                          Delta<4, &E::correlation>, Value<5, &E::device>, Value<6, &E::context>,
                          Value<7, &E::stream>, Ref<8, EntryKind::kString, &E::name>,
                          Ref<9, EntryKind::kLaunchShape, &E::shape>, Value<10, &E::graph>,
                          Delta<11, &E::graph_node>, Delta<12, &E::grid_id>, Value<13, &E::channel>,
                          Value<14, &E::channel_type>, Value<15, &E::device_launched>>;
};

template <>
struct EventColumns<CopyEvent> {
  using E = CopyEvent;
  using Rows =
      std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                 Delta<4, &E::correlation>, Value<5, &E::device>, Value<6, &E::context>,
                 Value<7, &E::stream>, Value<8, &E::bytes>, Value<9, &E::copy_kind>,
                 Value<10, &E::src_kind>, Value<11, &E::dst_kind>, Value<12, &E::flags>,
                 Value<13, &E::graph>, Delta<14, &E::graph_node>, Value<15, &E::peer>,
                 Value<16, &E::src_device>, Value<17, &E::dst_device>, Value<18, &E::src_context>,
                 Value<19, &E::dst_context>, Value<20, &E::copies>, Value<21, &E::channel>,
                 Value<22, &E::channel_type>>;
};

template <>
struct EventColumns<MemsetEvent> {
  using E = MemsetEvent;
  using Rows =
      std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                 Delta<4, &E::correlation>, Value<5, &E::device>, Value<6, &E::context>,
                 Value<7, &E::stream>, Value<8, &E::bytes>, Value<9, &E::value>,
                 Value<10, &E::memory_kind>, Value<11, &E::flags>, Value<12, &E::graph>,
                 Delta<13, &E::graph_node>, Value<14, &E::channel>, Value<15, &E::channel_type>>;
};

template <>
struct EventColumns<ApiCallEvent> {
  using E = ApiCallEvent;
  using Rows = std::tuple<Delta<2, &E::start_ticks>, Since<3, &E::end_ticks, &E::start_ticks>,
                          Delta<4, &E::correlation>, Ref<5, EntryKind::kApiFunction, &E::api>,
                          Signed<6, &E::status>, Ref<7, EntryKind::kStack, &E::stack>>;
};

template <>
struct EventColumns<EventCallEvent> {
  using E = EventCallEvent;
  using Rows = std::tuple<Delta<2, &E::start_ticks>, Since<3, &E::end_ticks, &E::start_ticks>,
                          Delta<4, &E::correlation>, Ref<5, EntryKind::kApiFunction, &E::api>,
                          Signed<6, &E::status>, Ref<7, EntryKind::kStack, &E::stack>,
                          Delta<8, &E::event>, Delta<9, &E::stream>>;
};

template <>
struct EventColumns<SyncEvent> {
  using E = SyncEvent;
  using Rows = std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                          Delta<4, &E::correlation>, Value<5, &E::type>, Value<6, &E::context>,
                          Value<7, &E::stream>, Value<8, &E::cuda_event>,
                          Delta<9, &E::cuda_event_sync_id>, Signed<10, &E::status>>;
};

template <>
struct EventColumns<CudaEventEvent> {
  using E = CudaEventEvent;
  using Rows = std::tuple<Delta<2, &E::device_ns>, Delta<3, &E::correlation>, Value<4, &E::device>,
                          Value<5, &E::context>, Value<6, &E::stream>, Value<7, &E::cuda_event>,
                          Delta<8, &E::cuda_event_sync_id>>;
};

template <>
struct EventColumns<GraphLaunchEvent> {
  using E = GraphLaunchEvent;
  using Rows = std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                          Delta<4, &E::correlation>, Value<5, &E::device>, Value<6, &E::context>,
                          Value<7, &E::stream>, Value<8, &E::graph>, Value<9, &E::end_device>,
                          Value<10, &E::end_context>>;
};

// The columns that push, start and mark share; B is the first free field number.
template <typename E, uint32_t B>
using NvtxColumns =
    std::tuple<Ref<B, EntryKind::kString, &E::nvtx, &NvtxAttributes::name>,
               Ref<B + 1, EntryKind::kNvtxDomain, &E::nvtx, &NvtxAttributes::domain>,
               Value<B + 2, &E::nvtx, &NvtxAttributes::category>,
               Value<B + 3, &E::nvtx, &NvtxAttributes::color>,
               Value<B + 4, &E::nvtx, &NvtxAttributes::payload_type>,
               Value<B + 5, &E::nvtx, &NvtxAttributes::payload>,
               Value<B + 6, &E::nvtx, &NvtxAttributes::payload_dropped>>;

template <typename... Tuples>
using Joined = decltype(std::tuple_cat(std::declval<Tuples>()...));

template <>
struct EventColumns<RangePushEvent> {
  using E = RangePushEvent;
  using Rows = Joined<std::tuple<Delta<2, &E::time_ticks>>, NvtxColumns<E, 3>>;
};

template <>
struct EventColumns<RangePopEvent> {
  using E = RangePopEvent;
  using Rows = std::tuple<Delta<2, &E::time_ticks>, Ref<3, EntryKind::kNvtxDomain, &E::domain>>;
};

template <>
struct EventColumns<RangeStartEvent> {
  using E = RangeStartEvent;
  using Rows = Joined<std::tuple<Delta<2, &E::time_ticks>, Delta<3, &E::range>>, NvtxColumns<E, 4>>;
};

template <>
struct EventColumns<RangeEndEvent> {
  using E = RangeEndEvent;
  using Rows = std::tuple<Delta<2, &E::time_ticks>, Delta<3, &E::range>>;
};

template <>
struct EventColumns<MarkEvent> {
  using E = MarkEvent;
  using Rows = Joined<std::tuple<Delta<2, &E::time_ticks>>, NvtxColumns<E, 3>>;
};

template <>
struct EventColumns<NameEvent> {
  using E = NameEvent;
  using Rows = std::tuple<Delta<2, &E::time_ticks>, Value<3, &E::object>, Delta<4, &E::id>,
                          Ref<5, EntryKind::kNvtxDomain, &E::domain>,
                          Ref<6, EntryKind::kString, &E::name>, Value<7, &E::resource_type>>;
};

template <>
struct EventColumns<MemoryEvent> {
  using E = MemoryEvent;
  using Rows = std::tuple<
      Delta<2, &E::time_ns>, Delta<3, &E::address>, Value<4, &E::bytes>, Delta<5, &E::correlation>,
      Value<6, &E::operation>, Value<7, &E::memory_kind>, Value<8, &E::device>,
      Value<9, &E::context>, Value<10, &E::stream>, Value<11, &E::is_async>,
      Ref<12, EntryKind::kString, &E::name>, Value<13, &E::pool_type>, Value<14, &E::pool_address>,
      Value<15, &E::pool_release_threshold>, Value<16, &E::pool_size>, Value<17, &E::pool_used>>;
};

template <>
struct EventColumns<MemoryPoolEvent> {
  using E = MemoryPoolEvent;
  using Rows = std::tuple<Delta<2, &E::time_ns>, Value<3, &E::address>, Delta<4, &E::correlation>,
                          Value<5, &E::operation>, Value<6, &E::pool_type>, Value<7, &E::device>,
                          Value<8, &E::release_threshold>, Value<9, &E::size>, Value<10, &E::used>,
                          Value<11, &E::min_bytes_to_keep>>;
};

template <>
struct EventColumns<OverheadEvent> {
  using E = OverheadEvent;
  using Rows =
      std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>,
                 Value<4, &E::overhead_kind>, Value<5, &E::thread>, Delta<6, &E::correlation>>;
};

template <>
struct EventColumns<ContextEvent> {
  using E = ContextEvent;
  using Rows =
      std::tuple<Value<2, &E::context>, Value<3, &E::device>, Value<4, &E::api_kind>,
                 Value<5, &E::null_stream>, Value<6, &E::parent_context>,
                 Value<7, &E::multiprocessors>, Value<8, &E::green>, Value<9, &E::cig_mode>>;
};

template <>
struct EventColumns<StreamEvent> {
  using E = StreamEvent;
  using Rows = std::tuple<Value<2, &E::context>, Value<3, &E::stream>, Signed<4, &E::priority>,
                          Value<5, &E::flags>, Delta<6, &E::correlation>>;
};

template <>
struct EventColumns<ResourceEvent> {
  using E = ResourceEvent;
  using Rows = std::tuple<Delta<2, &E::time_ticks>, Value<3, &E::change>, Delta<4, &E::handle>,
                          Delta<5, &E::id>, Delta<6, &E::parent>, Value<7, &E::node_type>>;
};

template <>
struct EventColumns<JitEvent> {
  using E = JitEvent;
  using Rows =
      std::tuple<Delta<2, &E::start_ns>, Since<3, &E::end_ns, &E::start_ns>, Value<4, &E::device>,
                 Value<5, &E::entry_type>, Value<6, &E::operation>, Value<7, &E::operation_id>,
                 Value<8, &E::cache_bytes>, Delta<9, &E::correlation>>;
};

template <typename... Events>
struct EventList {};

// Every kind, in the order of EventKind. Whatever must do something for each kind walks this list.
using AllEvents =
    EventList<KernelEvent, CopyEvent, MemsetEvent, ApiCallEvent, EventCallEvent, SyncEvent,
              CudaEventEvent, GraphLaunchEvent, RangePushEvent, RangePopEvent, RangeStartEvent,
              RangeEndEvent, MarkEvent, NameEvent, MemoryEvent, MemoryPoolEvent, OverheadEvent,
              ContextEvent, StreamEvent, ResourceEvent, JitEvent>;

// Calls visit.template operator()<Event>() for each kind.
template <typename Visit, typename... Events>
constexpr void ForEachEventOf(EventList<Events...>, Visit&& visit) {
  (visit.template operator()<Events>(), ...);
}
template <typename Visit>
constexpr void ForEachEvent(Visit&& visit) {
  ForEachEventOf(AllEvents{}, visit);
}

// Calls visit.template operator()<Column>() for each column of Event.
template <typename Event, typename Visit>
constexpr void ForEachColumn(Visit&& visit) {
  [&]<typename... Columns>(std::type_identity<std::tuple<Columns...>>) {
    (visit.template operator()<Columns>(), ...);
  }(std::type_identity<typename EventColumns<Event>::Rows>{});
}

}  // namespace ranktap::proto
