// Ring events -> protobuf payloads (arena entries: encode_entry.h). Used by the agent's sender, and
// by the collector when it drains the rings of a process that died. Runs on: the sender thread; in
// the collector.  May not: be called on a user's thread (allocates).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "proto/columns.h"
#include "proto/events.h"
#include "proto/ring.h"
#include "proto/varint.h"

namespace ranktap::proto {

// What the encoder asks of its caller about names. A template parameter and no base class: an event
// has two names, and at 25 ns an event a virtual call for each shows.
template <typename Ids>
concept EntryIds = requires(Ids ids, EntryKind kind, ArenaRef ref,
                            std::span<const std::byte> text) {
  // The id of the arena entry at `ref`, which must be of `kind`; 0 when it is not one. The caller
  // sees to it that the entry's definition precedes this frame.
  { ids.IdOf(kind, ref) } -> std::same_as<uint32_t>;
  // The id of a string that came inline with an event.
  { ids.IdOfText(text) } -> std::same_as<uint32_t>;
};

// Collects events of one writer and writes them as one v1.Events. Holds pointers into the ring
// between Add and Encode.
class EventEncoder {
 public:
  // False, and nothing is taken, when the event is not well formed: unknown kind, or sizes that do
  // not add up. `available` is what lies between `event` and the end of the ring's bytes.
  [[nodiscard]] bool Add(const EventHeader* event, size_t available) {
    if (!IsWellFormed(event, available)) return false;
    events_[event->kind].push_back(event);
    ++count_;
    return true;
  }

  static bool IsWellFormed(const EventHeader* event, size_t available) {
    if (available < sizeof(EventHeader)) return false;
    const size_t fixed = event->kind <= kMaxEventKind ? kEventBytes[event->kind] : 0;
    const size_t variable = Padded(event->text_bytes) + Padded(event->payload_bytes);
    return fixed != 0 && event->bytes == fixed + variable && event->bytes <= available;
  }

  size_t count() const { return count_; }

  // Appends the payload to `out` and forgets the events.
  void Encode(EntryIds auto& ids, std::string& out) {
    protozero::pbf_writer message(out);
    ForEachEvent([&]<typename Event>() {
      auto& events = events_[static_cast<size_t>(Event::kKind)];
      if (events.empty()) return;
      protozero::pbf_writer section(message, static_cast<uint32_t>(Event::kKind));
      EncodeSection<Event>(events, ids, section);
      events.clear();
    });
    count_ = 0;
  }

  static constexpr size_t Padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

 private:
  using Pointers = std::vector<const EventHeader*>;

  static constexpr std::array<uint16_t, kMaxEventKind + 1> kEventBytes = [] {
    std::array<uint16_t, kMaxEventKind + 1> bytes{};
    ForEachEvent([&]<typename Event>() {
      bytes[static_cast<size_t>(Event::kKind)] = static_cast<uint16_t>(sizeof(Event));
    });
    return bytes;
  }();

  template <typename Event>
  static const Event& As(const EventHeader* header) {
    return *reinterpret_cast<const Event*>(header);
  }
  template <typename Event>
  static std::span<const std::byte> TextOf(const EventHeader* header) {
    const auto* begin = reinterpret_cast<const std::byte*>(header) + sizeof(Event);
    return {begin, header->text_bytes};
  }

  template <typename Event>
  void EncodeSection(const Pointers& events, EntryIds auto& ids, protozero::pbf_writer& section) {
    section.add_uint32(kCountField, static_cast<uint32_t>(events.size()));
    values_.resize(events.size());
    ForEachColumn<Event>([&]<typename Column>() {
      GatherColumn<Event, Column>(events, ids);
      WriteColumn<Column>(section);
    });
    WritePayloads<Event>(events, section);
  }

  // Fills values_ with what goes on the wire for a whole column of n elements, and `differing_`
  // with the bits in which elements differ from the first (of a delta column: from the second).
  template <typename Event, typename Column>
  void GatherColumn(const Pointers& events, EntryIds auto& ids) {
    uint64_t* value = values_.data();
    uint64_t previous = 0;
    uint64_t differing = 0;
    if constexpr (Column::kEncoding == Encoding::kDelta) {
      // The first difference is to 0 and says nothing about the others.
      uint64_t raw = Column::Get(As<Event>(events[0]));
      *value++ = Zigzag(static_cast<int64_t>(raw));
      previous = raw;
      uint64_t common = 0;
      for (size_t i = 1; i < events.size(); ++i) {
        raw = Column::Get(As<Event>(events[i]));
        const uint64_t coded = Zigzag(static_cast<int64_t>(raw - previous));
        previous = raw;
        common = i == 1 ? coded : common;
        differing |= coded ^ common;
        *value++ = coded;
      }
    } else {
      const uint64_t first = CodedValue<Event, Column>(events[0], ids);
      for (const EventHeader* header : events) {
        const uint64_t coded = CodedValue<Event, Column>(header, ids);
        differing |= coded ^ first;
        *value++ = coded;
      }
    }
    differing_ = differing;
  }

  template <typename Event, typename Column>
  static uint64_t CodedValue(const EventHeader* header, EntryIds auto& ids) {
    const uint64_t raw = Column::Get(As<Event>(header));
    if constexpr (Column::kEncoding == Encoding::kSigned) {
      return Zigzag(static_cast<int64_t>(raw));
    } else if constexpr (Column::kEncoding == Encoding::kRef) {
      // Only a name can come inline: an event has at most one text.
      if (Column::kEntryKind == EntryKind::kString && header->text_bytes != 0) {
        return ids.IdOfText(TextOf<Event>(header));
      }
      return ids.IdOf(Column::kEntryKind, static_cast<ArenaRef>(raw));
    } else {
      return raw;
    }
  }

  template <typename Column>
  void WriteColumn(protozero::pbf_writer& section) {
    const size_t count = ColumnElements<Column>();
    if (count == 0) return;
    bytes_.resize(count * kMaxVarintBytes);
    std::byte* end = bytes_.data();
    for (size_t i = 0; i < count; ++i) end = WriteVarint(end, values_[i]);
    section.add_bytes(Column::kField, reinterpret_cast<const char*>(bytes_.data()),
                      static_cast<size_t>(end - bytes_.data()));
  }

  // How many elements stand for the whole column (columns.h).
  template <typename Column>
  size_t ColumnElements() const {
    if (differing_ != 0) return values_.size();
    if constexpr (Column::kEncoding == Encoding::kDelta) {
      if (values_.size() > 1 && values_[1] != 0) return 2;
    }
    return values_[0] == 0 ? 0 : 1;
  }

  template <typename Event>
  void WritePayloads(const Pointers& events, protozero::pbf_writer& section) {
    payload_.clear();
    for (const EventHeader* header : events) payload_.append(PayloadOf<Event>(header));
    if (payload_.empty()) return;
    for (size_t i = 0; i < events.size(); ++i) values_[i] = events[i]->payload_bytes;
    bytes_.resize(events.size() * kMaxVarintBytes);
    std::byte* end = bytes_.data();
    for (const uint64_t value : values_) end = WriteVarint(end, value);
    section.add_bytes(kPayloadSizesField, reinterpret_cast<const char*>(bytes_.data()),
                      static_cast<size_t>(end - bytes_.data()));
    section.add_bytes(kPayloadField, payload_);
  }

  template <typename Event>
  static std::string_view PayloadOf(const EventHeader* header) {
    const auto* begin =
        reinterpret_cast<const char*>(header) + sizeof(Event) + Padded(header->text_bytes);
    return {begin, header->payload_bytes};
  }

  std::array<Pointers, kMaxEventKind + 1> events_;
  size_t count_ = 0;
  std::vector<uint64_t> values_;
  uint64_t differing_ = 0;
  std::vector<std::byte> bytes_;
  std::string payload_;
};

}  // namespace ranktap::proto
