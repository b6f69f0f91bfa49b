// One column of an encoded section -> the end of a column in memory, without a struct in between.
#pragma once

#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "collector/trace/model.h"
#include "proto/decode.h"

namespace ranktap::collector {

template <typename Event, uint32_t Field>
constexpr size_t ColumnIndex() {
  size_t index = 0, found = SIZE_MAX;
  proto::ForEachColumn<Event>([&]<typename C>() {
    if (C::kField == Field) found = index;
    ++index;
  });
  return found;
}

template <typename Event, uint32_t Field>
using ColumnOf =
    std::tuple_element_t<ColumnIndex<Event, Field>(), typename proto::EventColumns<Event>::Rows>;

// The column's bytes: none, and every value is 0.
template <uint32_t Field, typename Event>
std::span<const std::byte> ColumnBytes(const proto::Section<Event>& section) {
  return section.columns[ColumnIndex<Event, Field>()];
}

// Decodes field number Field into out[0 .. section.count).
template <uint32_t Field, typename Event, typename T>
[[nodiscard]] bool DecodeInto(const proto::Section<Event>& section, T* out) {
  return proto::DecodeColumn<ColumnOf<Event, Field>>(
      ColumnBytes<Field>(section), section.count,
      [out](uint32_t i, uint64_t value) { out[i] = static_cast<T>(value); });
}

template <uint32_t Field, typename Event, typename T>
[[nodiscard]] bool Append(const proto::Section<Event>& section, Column<T>* column) {
  return DecodeInto<Field>(section, column->Grow(section.count));
}

// `rows`: of the table before this section.
template <uint32_t Field, typename Event, typename T>
[[nodiscard]] bool AppendOptional(const proto::Section<Event>& section, size_t rows,
                                  OptionalColumn<T>* column) {
  if (ColumnBytes<Field>(section).empty()) return true;
  column->PadTo(rows);
  return Append<Field>(section, column);
}

// Values of a packed column on their way there: of the section decoded last. A thread has its own.
struct Unpacked {
  std::vector<int64_t> times;
  std::vector<uint32_t> ids;
};

template <uint32_t Field, typename Event>
[[nodiscard]] bool AppendIds(const proto::Section<Event>& section, Unpacked* unpacked,
                             IdColumn* column) {
  unpacked->ids.resize(section.count);
  if (!DecodeInto<Field>(section, unpacked->ids.data())) return false;
  column->Append(unpacked->ids);
  return true;
}

// Start and end, the latter from its distance to the start (field 3 of every such kind).
template <typename Event>
[[nodiscard]] bool AppendSpan(const proto::Section<Event>& section, Unpacked* unpacked,
                              TimeColumn* start, TimeColumn* end) {
  std::vector<int64_t>& times = unpacked->times;
  times.resize(section.count);
  if (!DecodeInto<2>(section, times.data())) return false;
  start->Append(times);
  const bool ok = proto::DecodeColumn<ColumnOf<Event, 3>>(
      ColumnBytes<3>(section), section.count, [&times](uint32_t i, uint64_t distance) {
        times[i] = static_cast<int64_t>(static_cast<uint64_t>(times[i]) + distance);
      });
  end->Append(times);
  return ok;
}

}  // namespace ranktap::collector
