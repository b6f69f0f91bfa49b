// One column of an encoded section -> the end of a column in memory, without a struct in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>

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

// Room for the values of one section. It never shrinks and is never cleared: as vectors, which
// small sections made small, such rooms were cleared for each large one.
template <typename T>
class Scratch {
 public:
  // `count` values, not set; those of before are gone.
  std::span<T> Take(size_t count) {
    if (count > size_) {
      values_ = std::make_unique_for_overwrite<T[]>(count);
      size_ = count;
    }
    return {values_.get(), count};
  }

 private:
  std::unique_ptr<T[]> values_;
  size_t size_ = 0;
};

// Values of a packed column on their way there: of the section decoded last. A thread has its own.
struct Unpacked {
  Scratch<int64_t> times;
  Scratch<uint32_t> ids;
};

template <uint32_t Field, typename Event>
[[nodiscard]] bool AppendIds(const proto::Section<Event>& section, Unpacked* unpacked,
                             IdColumn* column) {
  const std::span<uint32_t> ids = unpacked->ids.Take(section.count);
  if (!DecodeInto<Field>(section, ids.data())) return false;
  column->Append(ids);
  return true;
}

// Start and end, the latter from its distance to the start (field 3 of every such kind).
template <typename Event>
[[nodiscard]] bool AppendSpan(const proto::Section<Event>& section, Unpacked* unpacked,
                              TimeColumn* start, TimeColumn* end) {
  const std::span<int64_t> times = unpacked->times.Take(section.count);
  if (!DecodeInto<2>(section, times.data())) return false;
  start->Append(times);
  const bool ok = proto::DecodeColumn<ColumnOf<Event, 3>>(
      ColumnBytes<3>(section), section.count, [times](uint32_t i, uint64_t distance) {
        times[i] = static_cast<int64_t>(static_cast<uint64_t>(times[i]) + distance);
      });
  end->Append(times);
  return ok;
}

}  // namespace ranktap::collector
