#include "collector/live/live_rank.h"

#include <algorithm>
#include <array>

#include "collector/live/live_state.h"

namespace ranktap::collector {
namespace {

using Open = LiveState::Open;
using proto::Section;

// The column with this number.
template <uint32_t Field, typename Event>
[[nodiscard]] bool TakeColumn(const Section<Event>& section, std::vector<uint64_t>* values) {
  if (values->size() < section.count) values->resize(section.count);
  bool ok = true;
  size_t index = 0;
  proto::ForEachColumn<Event>([&]<typename Column>() {
    const std::span<const std::byte> bytes = section.columns[index++];
    if constexpr (Column::kField == Field) {
      ok = proto::DecodeColumn<Column>(bytes, section.count,
                                       [&](uint32_t i, uint64_t value) { (*values)[i] = value; });
    }
  });
  return ok;
}

template <uint32_t Name, typename Event>
[[nodiscard]] bool TakeNvtx(const Section<Event>& section, LiveColumns::Ranges* ranges) {
  ranges->count = section.count;
  return TakeColumn<2>(section, &ranges->time) && TakeColumn<Name>(section, &ranges->name) &&
         TakeColumn<Name + 1>(section, &ranges->domain) &&
         TakeColumn<Name + 5>(section, &ranges->payload);
}

}  // namespace

struct LiveRank::State : LiveState {
  template <typename Event>
  [[nodiscard]] bool TakeWork(const Section<Event>& section, const LiveNames& names,
                              const LiveClock& clock, LiveColumns* columns);
  void TakeRanges(uint32_t writer, const LiveNames& names, const LiveClock& clock,
                  const LiveColumns& columns);
  // Sums that were told with what was open: an open range that is forgotten makes none fall.
  uint64_t told_collective_ns = 0;
  std::array<uint64_t, kLivePhases> told_phase_ns{};
  Open Opened(uint32_t writer, const LiveNames& names, const LiveColumns::Ranges& ranges, size_t i,
              int64_t begin);
};

LiveRank::LiveRank(const v1::HostClock& clock) : clock_(clock.kind() == v1::HostClock::KIND_TSC) {}
LiveRank::~LiveRank() = default;

void LiveRank::Take(const proto::FrameView& frame, LiveColumns* columns) {
  switch (frame.header.type) {
    case proto::FrameType::kDictionary:
      return names_.Add(frame.payload);
    case proto::FrameType::kClock: {
      v1::ClockReadings readings;
      const int size = static_cast<int>(frame.payload.size());
      if (readings.ParseFromArray(frame.payload.data(), size)) clock_.Note(readings);
      return;
    }
    case proto::FrameType::kGap:
      return Resume();  // told when it begins and when it ends: no range goes on across it
    case proto::FrameType::kEvents:
      if (columns != nullptr) TakeEvents(frame, columns);
      return;
    default:
      return;
  }
}

void LiveRank::TakeEvents(const proto::FrameView& frame, LiveColumns* columns) {
  if (state_ == nullptr) state_ = std::make_unique<State>();
  const proto::FrameHeader& header = frame.header;
  // An end that is missing would leave its range open for good.
  const uint64_t expected = state_->next_event(header.writer);
  if (expected != 0 && expected != header.first_event) Resume();
  state_->next_event(header.writer) = header.first_event + header.events;
  for (auto* const ranges : {&columns->pushes, &columns->pops, &columns->starts, &columns->ends}) {
    ranges->count = 0;
  }
  const bool ok = proto::DecodeEvents(
      frame.payload, header.events, [&]<typename Event>(const Section<Event>& section) {
        if (section.count > proto::kMaxEventsPerFrame) return false;
        if constexpr (std::is_same_v<Event, proto::KernelEvent> ||
                      std::is_same_v<Event, proto::CopyEvent> ||
                      std::is_same_v<Event, proto::MemsetEvent> ||
                      std::is_same_v<Event, proto::GraphLaunchEvent>) {
          return state_->TakeWork(section, names_, clock_, columns);
        } else if constexpr (std::is_same_v<Event, proto::MarkEvent>) {
          const uint64_t wanted = names_.OutOfMemory();
          if (wanted == 0) return true;
          if (!TakeColumn<3>(section, &columns->marks)) return false;
          const auto end = columns->marks.begin() + section.count;
          state_->out_of_memory +=
              static_cast<uint64_t>(std::count(columns->marks.begin(), end, wanted));
        } else if constexpr (std::is_same_v<Event, proto::RangePushEvent>) {
          return TakeNvtx<3>(section, &columns->pushes);
        } else if constexpr (std::is_same_v<Event, proto::RangePopEvent>) {
          columns->pops.count = section.count;
          return TakeColumn<2>(section, &columns->pops.time) &&
                 TakeColumn<3>(section, &columns->pops.domain);
        } else if constexpr (std::is_same_v<Event, proto::RangeStartEvent>) {
          return TakeNvtx<4>(section, &columns->starts) &&
                 TakeColumn<3>(section, &columns->starts.id);
        } else if constexpr (std::is_same_v<Event, proto::RangeEndEvent>) {
          columns->ends.count = section.count;
          return TakeColumn<2>(section, &columns->ends.time) &&
                 TakeColumn<3>(section, &columns->ends.id);
        }
        return true;
      });
  if (!ok) return Resume();
  state_->TakeRanges(header.writer, names_, clock_, *columns);
}

void LiveRank::Resume() {
  if (state_ != nullptr) state_->ForgetOpen();
}

template <typename Event>
bool LiveRank::State::TakeWork(const Section<Event>& section, const LiveNames& names,
                               const LiveClock& clock, LiveColumns* columns) {
  constexpr bool kIsKernel = std::is_same_v<Event, proto::KernelEvent>;
  std::vector<uint64_t>& lengths = columns->lengths;
  if (!TakeColumn<3>(section, &lengths)) return false;
  bool any_collectives = false;
  if constexpr (kIsKernel) {
    any_collectives = names.KnowsCollectiveKernels();
    if (any_collectives && !TakeColumn<8>(section, &columns->kernels)) return false;
    kernels += section.count;
  }
  const uint64_t offset = clock.DeviceOffset();
  using Begin = std::tuple_element_t<0, typename proto::EventColumns<Event>::Rows>;
  static_assert(Begin::kField == 2);
  return proto::DecodeColumn<Begin>(
      section.columns[0], section.count, [&](uint32_t i, uint64_t value) {
        const auto begin = static_cast<int64_t>(value - offset);
        const auto end = static_cast<int64_t>(value - offset + lengths[i]);
        busy.Add(begin, end);
        if (!any_collectives || !names.IsCollectiveKernel(columns->kernels[i])) {
          computing.Add(begin, end);
        }
      });
}

Open LiveRank::State::Opened(uint32_t writer, const LiveNames& names,
                             const LiveColumns::Ranges& ranges, size_t i, int64_t begin) {
  Open open{.begin = begin, .number = 0, .name = {}};
  switch (names.Domain(ranges.domain[i])) {
    case LiveDomain::kSteps:
      HookTellsSteps();
      open.what = Open::What::kStep;
      open.number = static_cast<int64_t>(ranges.payload[i]);
      break;
    case LiveDomain::kPhases:
      open.phase = names.Phase(ranges.name[i]);
      if (open.phase != LivePhase::kNone) open.what = Open::What::kPhase;
      break;
    case LiveDomain::kCollectives:
      open.what = Open::What::kCollective;
      open.name = names.Collective(ranges.name[i]);
      break;
    case LiveDomain::kPrograms:
      if (const auto number = names.Step(ranges.name[i]); number && TakesProgramSteps(writer)) {
        open.what = Open::What::kStep;
        open.number = *number;
      }
      break;
    case LiveDomain::kIgnored:
      break;
  }
  return open;
}

// A frame has its pushes and pops in two sections: their order is that of their times.
void LiveRank::State::TakeRanges(uint32_t writer, const LiveNames& names, const LiveClock& clock,
                                 const LiveColumns& columns) {
  const LiveColumns::Ranges &pushes = columns.pushes, &pops = columns.pops;
  const size_t push_count = pushes.count, pop_count = pops.count;
  for (size_t push = 0, pop = 0; push < push_count || pop < pop_count;) {
    const bool pop_is_next =
        push == push_count || (pop < pop_count && pops.time[pop] <= pushes.time[push]);
    const auto& from = pop_is_next ? pops : pushes;
    const size_t i = pop_is_next ? pop++ : push++;
    if (names.Domain(from.domain[i]) == LiveDomain::kIgnored) continue;
    const auto time = clock.OfHost(from.time[i]);
    if (!time) continue;
    if (pop_is_next) {
      Pop(writer, from.domain[i], *time);
    } else {
      Push(writer, from.domain[i], Opened(writer, names, from, i, *time));
    }
  }
  for (size_t i = 0; i < columns.starts.count; ++i) {
    const auto time = clock.OfHost(columns.starts.time[i]);
    if (!time) continue;
    Open open = Opened(writer, names, columns.starts, i, *time);
    if (open.what != Open::What::kNothing) Start(columns.starts.id[i], std::move(open));
  }
  for (size_t i = 0; i < columns.ends.count; ++i) {
    if (const auto time = clock.OfHost(columns.ends.time[i])) End(columns.ends.id[i], *time);
  }
}

void LiveRank::Describe(uint64_t now_ns, v1::LiveStatus* status) const {
  if (state_ == nullptr) return;
  const auto now = static_cast<int64_t>(now_ns);
  const auto positive = [](int64_t ns) { return static_cast<uint64_t>(std::max<int64_t>(ns, 0)); };
  State& state = *state_;
  const auto grown = [&](int64_t ns, uint64_t* told) {
    return *told = std::max(*told, positive(ns));
  };
  for (const LiveStep& step : state.steps) status->add_step_ns(positive(step.end - step.begin));
  status->set_steps(state.step_count);
  if (!state.steps.empty()) {
    if (state.steps.back().number >= 0) {
      status->set_step_number(static_cast<uint64_t>(state.steps.back().number));
    }
    status->set_since_step_ns(positive(now - state.steps.back().end));
  }
  status->set_kernels(state.kernels);
  status->set_out_of_memory(state.out_of_memory);
  status->set_busy_ns(positive(state.busy.total()));
  status->set_exposed_ns(positive(state.busy.total() - state.computing.total()));
  if (state.kernels > 0) status->set_device_age_ns(positive(now - state.busy.end()));
  int64_t collectives = state.collectives.total();
  if (const Open* const open = state.LongestOpen(Open::What::kCollective)) {
    status->set_collective(open->name);
    status->set_collective_ns_open(positive(now - open->begin));
    // What others that have ended meanwhile cover is counted once.
    const int64_t known = state.collectives.total() == 0 ? open->begin : state.collectives.end();
    collectives += std::max<int64_t>(now - std::max(open->begin, known), 0);
  }
  status->set_collective_ns(grown(collectives, &state.told_collective_ns));
  const auto phase_ns = [&](LivePhase phase) {
    const Open* const open = state.LongestOpen(Open::What::kPhase, phase);
    return grown(state.phases[static_cast<size_t>(phase)] +
                     (open == nullptr ? 0 : std::max<int64_t>(now - open->begin, 0)),
                 &state.told_phase_ns[static_cast<size_t>(phase)]);
  };
  status->set_data_ns(phase_ns(LivePhase::kData));
  status->set_checkpoint_ns(phase_ns(LivePhase::kCheckpoint));
  status->set_compilation_ns(phase_ns(LivePhase::kCompilation));
  status->set_collection_ns(phase_ns(LivePhase::kCollection));
  status->set_backward_ns(phase_ns(LivePhase::kBackward));
  status->set_optimizer_ns(phase_ns(LivePhase::kOptimizer));
}

size_t LiveRank::MemoryBytes() const {
  return sizeof(*this) + names_.MemoryBytes() + (state_ == nullptr ? 0 : sizeof(State) + 4096);
}

}  // namespace ranktap::collector
