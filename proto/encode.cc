#include "proto/encode.h"

namespace ranktap::proto {
namespace {

template <typename Event>
const Event& As(const EventHeader* header) {
  return *reinterpret_cast<const Event*>(header);
}

}  // namespace

void EventEncoder::Reserve(size_t events) {
  // The inline bytes of a batch beside its columns are no longer than its events.
  constexpr size_t kInlineBytes = 32;
  events_.reserve(events);
  sorted_.reserve(events);
  values_.reserve(events);
  bytes_.reserve(events * kMaxVarintBytes);
  payload_.reserve(events * kInlineBytes);
}

void EventEncoder::Clear() {
  events_.clear();
  counts_.fill(0);
}

EventEncoder::Counts EventEncoder::SortByKind() {
  Counts ends{};
  for (size_t kind = 1; kind < ends.size(); ++kind) ends[kind] = ends[kind - 1] + counts_[kind - 1];
  sorted_.resize(events_.size());
  for (const EventHeader* const event : events_) sorted_[ends[event->kind]++] = event;
  return ends;
}

void EventEncoder::EncodeColumns(ColumnIds& ids, std::string& out) {
  const Counts ends = SortByKind();
  protozero::pbf_writer message(out);
  ForEachEvent([&]<typename Event>() {
    const auto kind = static_cast<size_t>(Event::kKind);
    if (counts_[kind] == 0) return;
    protozero::pbf_writer section(message, static_cast<uint32_t>(kind));
    const Pointers events(sorted_.data() + ends[kind] - counts_[kind], counts_[kind]);
    EncodeSection<Event>(events, ids, section);
  });
  Clear();
}

template <typename Event>
void EventEncoder::EncodeSection(Pointers events, ColumnIds& ids, protozero::pbf_writer& section) {
  section.add_uint32(kCountField, static_cast<uint32_t>(events.size()));
  values_.resize(events.size());
  ForEachColumn<Event>([&]<typename Column>() {
    GatherColumn<Event, Column>(events, ids);
    WriteColumn(Column::kField, ColumnElements(Column::kEncoding == Encoding::kDelta), section);
  });
  WritePayloads(events, sizeof(Event), section);
}

template <typename Event, typename Column>
void EventEncoder::GatherDeltas(Pointers events) {
  uint64_t* value = values_.data();
  // The first difference is to 0 and says nothing about the others.
  uint64_t raw = Column::Get(As<Event>(events[0]));
  *value++ = Zigzag(static_cast<int64_t>(raw));
  uint64_t previous = raw, common = 0, differing = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    raw = Column::Get(As<Event>(events[i]));
    const uint64_t coded = Zigzag(static_cast<int64_t>(raw - previous));
    previous = raw;
    common = i == 1 ? coded : common;
    differing |= coded ^ common;
    *value++ = coded;
  }
  differing_ = differing;
}

template <typename Event, typename Column>
void EventEncoder::GatherColumn(Pointers events, ColumnIds& ids) {
  if constexpr (Column::kEncoding == Encoding::kDelta) {
    return GatherDeltas<Event, Column>(events);
  }
  uint64_t* value = values_.data();
  uint64_t differing = 0;
  const auto coded = [](const EventHeader* event) {
    const uint64_t raw = Column::Get(As<Event>(event));
    if constexpr (Column::kEncoding != Encoding::kSigned) return raw;
    return Zigzag(static_cast<int64_t>(raw));
  };
  if constexpr (Column::kEncoding == Encoding::kRef) {
    for (const EventHeader* event : events) *value++ = coded(event);
    // Only a name can come inline: an event has at most one text.
    const size_t text_at = Column::kEntryKind == EntryKind::kString ? sizeof(Event) : 0;
    ids.Resolve(Column::kEntryKind, events, text_at, values_.data());
    for (const uint64_t id : values_) differing |= id ^ values_[0];
  } else {
    const uint64_t first = coded(events[0]);
    for (const EventHeader* event : events) differing |= (*value++ = coded(event)) ^ first;
  }
  differing_ = differing;
}

void EventEncoder::WriteColumn(uint32_t field, size_t count, protozero::pbf_writer& section) {
  if (count == 0) return;
  bytes_.resize(count * kMaxVarintBytes);
  std::byte* end = bytes_.data();
  for (size_t i = 0; i < count; ++i) end = WriteVarint(end, values_[i]);
  section.add_bytes(field, reinterpret_cast<const char*>(bytes_.data()),
                    static_cast<size_t>(end - bytes_.data()));
}

size_t EventEncoder::ColumnElements(bool is_delta) const {
  if (differing_ != 0) return values_.size();
  if (is_delta && values_.size() > 1 && values_[1] != 0) return 2;
  return values_[0] == 0 ? 0 : 1;
}

void EventEncoder::WritePayloads(Pointers events, size_t fixed, protozero::pbf_writer& section) {
  payload_.clear();
  for (const EventHeader* event : events) {
    payload_.append(reinterpret_cast<const char*>(event) + fixed + Padded(event->text_bytes),
                    event->payload_bytes);
  }
  if (payload_.empty()) return;
  for (size_t i = 0; i < events.size(); ++i) values_[i] = events[i]->payload_bytes;
  WriteColumn(kPayloadSizesField, events.size(), section);
  section.add_bytes(kPayloadField, payload_);
}

}  // namespace ranktap::proto
