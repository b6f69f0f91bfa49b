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

// The names that the encoder asks its caller for. No base class: an event has two names, and at 25
// ns an event a virtual call for each shows.
template <typename Ids>
concept EntryIds = requires(Ids ids, EntryKind kind, ArenaRef ref,
                            std::span<const std::byte> text) {
  // The id of the arena entry at `ref`, which must be of `kind`; 0 when it is not one. The caller
  // sees to it that the entry's definition precedes this frame.
  { ids.IdOf(kind, ref) } -> std::same_as<uint32_t>;
  // The id of a string that came inline with an event.
  { ids.IdOfText(text) } -> std::same_as<uint32_t>;
};

// The same for a whole column at once: one virtual call for it, none for an event. So the encoder
// is compiled once, and not for each caller's ids.
class ColumnIds {
 public:
  // ids[i], which is events[i]'s arena reference, becomes its id. `text_at`: where an event of this
  // kind has its inline text; 0: it is not a column of texts.
  virtual void Resolve(EntryKind kind, std::span<const EventHeader* const> events, size_t text_at,
                       uint64_t* ids) = 0;

 protected:
  ~ColumnIds() = default;
};

template <EntryIds Ids>
class IdsByColumn final : public ColumnIds {
 public:
  explicit IdsByColumn(Ids& ids) : ids_(ids) {}
  void Resolve(EntryKind kind, std::span<const EventHeader* const> events, size_t text_at,
               uint64_t* ids) override {
    for (const EventHeader* const event : events) {
      const bool is_inline = text_at != 0 && event->text_bytes != 0;
      *ids = is_inline ? ids_.IdOfText({reinterpret_cast<const std::byte*>(event) + text_at,
                                        event->text_bytes})
                       : ids_.IdOf(kind, static_cast<ArenaRef>(*ids));
      ++ids;
    }
  }

 private:
  Ids& ids_;
};

// Collects events of one writer and writes them as one v1.Events. Holds pointers into the ring
// between Add and Encode.
class EventEncoder {
 public:
  // False, and nothing is taken, when the event is not well formed: unknown kind, or sizes that do
  // not add up. `available` is what lies between `event` and the end of the ring's bytes.
  [[nodiscard]] bool Add(const EventHeader* event, size_t available) {
    if (!IsWellFormed(event, available)) return false;
    events_.push_back(event);
    ++counts_[event->kind];
    return true;
  }
  // Room for so many events, so that no batch of theirs allocates.
  void Reserve(size_t events);
  // Forgets the events, where an Encode was cut short.
  void Clear();

  static bool IsWellFormed(const EventHeader* event, size_t available) {
    if (available < sizeof(EventHeader)) return false;
    const size_t fixed = event->kind <= kMaxEventKind ? kEventBytes[event->kind] : 0;
    const size_t variable = Padded(event->text_bytes) + Padded(event->payload_bytes);
    return fixed != 0 && event->bytes == fixed + variable && event->bytes <= available;
  }

  size_t count() const { return events_.size(); }

  // Appends the payload to `out` and forgets the events.
  void Encode(EntryIds auto& ids, std::string& out) {
    IdsByColumn by_column(ids);
    EncodeColumns(by_column, out);
  }

  static constexpr size_t Padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

 private:
  using Pointers = std::span<const EventHeader* const>;
  using Counts = std::array<uint32_t, kMaxEventKind + 1>;

  static constexpr std::array<uint16_t, kMaxEventKind + 1> kEventBytes = [] {
    std::array<uint16_t, kMaxEventKind + 1> bytes{};
    ForEachEvent([&]<typename Event>() {
      bytes[static_cast<size_t>(Event::kKind)] = static_cast<uint16_t>(sizeof(Event));
    });
    return bytes;
  }();

  void EncodeColumns(ColumnIds& ids, std::string& out);
  // Gives where each kind ends in sorted_.
  Counts SortByKind();
  template <typename Event>
  void EncodeSection(Pointers events, ColumnIds& ids, protozero::pbf_writer& section);
  // Fills values_ with what goes on the wire for a whole column of n elements, and `differing_`
  // with the bits in which elements differ from the first (of a delta column: from the second).
  template <typename Event, typename Column>
  void GatherColumn(Pointers events, ColumnIds& ids);
  template <typename Event, typename Column>
  void GatherDeltas(Pointers events);
  void WriteColumn(uint32_t field, size_t count, protozero::pbf_writer& section);
  // How many elements stand for the whole column (columns.h).
  size_t ColumnElements(bool is_delta) const;
  void WritePayloads(Pointers events, size_t fixed, protozero::pbf_writer& section);

  std::vector<const EventHeader*> events_;  // as they came
  std::vector<const EventHeader*> sorted_;  // kind by kind
  Counts counts_{};
  std::vector<uint64_t> values_;
  uint64_t differing_ = 0;
  std::vector<std::byte> bytes_;
  std::string payload_;
};

}  // namespace ranktap::proto
