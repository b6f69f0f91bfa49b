// v1.Events payloads -> columns or rows. Total over any input: what is malformed yields false,
// never an exception, a read out of bounds, or an allocation larger than kMaxEventsPerFrame rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "proto/columns.h"
#include "proto/frame.h"
#include "proto/varint.h"

namespace ranktap::proto {

// One kind's part of a frame, still encoded. Points into the payload.
template <typename Event>
struct Section {
  static constexpr size_t kColumns = std::tuple_size_v<typename EventColumns<Event>::Rows>;
  uint32_t count = 0;
  std::array<std::span<const std::byte>, kColumns> columns{};
  std::span<const std::byte> payload_sizes{};
  std::span<const std::byte> payload{};
};

// Calls take(i, value) for i in [0, count): decoded values, as Column::Set takes them. False when
// the column is malformed; take may have been called for some i by then.
template <typename Column, typename Take>
[[nodiscard]] bool DecodeColumn(std::span<const std::byte> bytes, uint32_t count, Take&& take) {
  const std::byte* in = bytes.data();
  const std::byte* const end = in + bytes.size();
  uint64_t current = 0;
  uint64_t step = 0;
  const auto value_of = [&](uint64_t coded) {
    if constexpr (Column::kEncoding == Encoding::kDelta) {
      step = static_cast<uint64_t>(Unzigzag(coded));
      return current += step;
    } else if constexpr (Column::kEncoding == Encoding::kSigned) {
      return static_cast<uint64_t>(Unzigzag(coded));
    } else {
      return coded;
    }
  };
  uint32_t i = 0;
  for (uint64_t coded[kVarintsAtOnce]; i < count && in != end;) {
    const size_t some = ReadVarints(&in, end, count - i, coded);
    if (in == nullptr) return false;
    for (size_t k = 0; k < some; ++k) take(i++, current = value_of(coded[k]));
  }
  if (in != end) return false;
  if (i == count) return true;
  // A short column (columns.h): nothing, one element, or first and difference.
  if constexpr (Column::kEncoding == Encoding::kDelta) {
    if (i > 2) return false;
    if (i < 2) step = 0;
    for (; i < count; ++i) take(i, current += step);
  } else {
    if (i > 1) return false;
    for (; i < count; ++i) take(i, current);
  }
  return true;
}

// The fields of every section, by number.
struct SectionFields {
  uint32_t count = 0;
  std::array<std::span<const std::byte>, kPayloadField + 1> bytes{};
};
[[nodiscard]] bool ParseFields(std::span<const std::byte> section, SectionFields* fields);

template <typename Event>
[[nodiscard]] bool ParseSection(std::span<const std::byte> bytes, Section<Event>* section) {
  SectionFields fields;
  if (!ParseFields(bytes, &fields)) return false;
  section->count = fields.count;
  section->payload_sizes = fields.bytes[kPayloadSizesField];
  section->payload = fields.bytes[kPayloadField];
  size_t index = 0;
  ForEachColumn<Event>(
      [&]<typename Column>() { section->columns[index++] = fields.bytes[Column::kField]; });
  return true;
}

// Calls visit(section) for each section with Section<Event>; visit returns false to give up. False
// when malformed, given up, or when the counts do not add up to `events` (FrameHeader::events).
template <typename Visit>
[[nodiscard]] bool DecodeEvents(std::span<const std::byte> payload, uint32_t events,
                                Visit&& visit) {
  uint64_t total = 0;
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(payload.data()), payload.size());
    while (reader.next()) {
      if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        continue;
      }
      const uint32_t kind = reader.tag();
      const protozero::data_view view = reader.get_view();
      const std::span<const std::byte> bytes = std::as_bytes(std::span(view.data(), view.size()));
      bool ok = true;
      bool known = false;
      ForEachEvent([&]<typename Event>() {
        if (kind != static_cast<uint32_t>(Event::kKind)) return;
        known = true;
        Section<Event> section;
        ok = ParseSection(bytes, &section) && (total += section.count) <= events && visit(section);
      });
      if (!ok) return false;
      if (!known) {
        // A kind of a newer agent. Its events count, so that the positions stay right.
        protozero::pbf_reader inner(view);
        if (inner.next(kCountField)) total += inner.get_uint32();
      }
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return total == events;
}

// The whole section as structs; members that are ArenaRef in a ring hold dictionary ids here, and
// the header's kind alone is set. Appends to `rows`.
template <typename Event>
[[nodiscard]] bool DecodeRows(const Section<Event>& section, std::vector<Event>* rows) {
  const size_t base = rows->size();
  rows->resize(base + section.count);
  for (size_t i = base; i < rows->size(); ++i) {
    (*rows)[i].header.kind = static_cast<uint16_t>(Event::kKind);
  }
  bool ok = true;
  size_t index = 0;
  ForEachColumn<Event>([&]<typename Column>() {
    ok = ok && DecodeColumn<Column>(
                   section.columns[index++], section.count,
                   [&](uint32_t i, uint64_t value) { Column::Set((*rows)[base + i], value); });
  });
  if (!ok) rows->resize(base);
  return ok;
}

// Calls take(i, bytes) for each event with an inline payload.
template <typename Event, typename Take>
[[nodiscard]] bool DecodePayloads(const Section<Event>& section, Take&& take) {
  if (section.payload_sizes.empty()) return true;
  bool fits = true;
  size_t offset = 0;
  const bool ok = DecodeColumn<Column<kPayloadSizesField, Encoding::kValue>>(
      section.payload_sizes, section.count, [&](uint32_t i, uint64_t bytes) {
        if (!fits || bytes > section.payload.size() - offset) {
          fits = false;
          return;
        }
        if (bytes != 0) take(i, section.payload.subspan(offset, bytes));
        offset += bytes;
      });
  return ok && fits;
}

}  // namespace ranktap::proto
