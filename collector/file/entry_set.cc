#include "collector/file/entry_set.h"

#include <algorithm>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "proto/ring.h"

namespace ranktap::collector {
namespace {

// Bits of room for each entry that came: a set of few entries with large ids stays small, and from
// 65,536 entries on every id has its bit.
constexpr size_t kDenseIdsAnEntry = 64;
constexpr size_t kOtherIdBytes = 40;  // a node of the set and its share of the buckets

// Ids in these lists are the program's own numbers; in the others they count up from 1.
constexpr bool HasArbitraryIds(uint32_t field) {
  return field == static_cast<uint32_t>(proto::EntryKind::kNvtxSchema) ||
         field == static_cast<uint32_t>(proto::EntryKind::kNvtxEnum);
}

// The number that tells the entry from others of its list. Schema and enum ids are unique within a
// domain only (static ones are chosen by libraries that know nothing of each other), so that the
// domain goes into theirs.
std::optional<uint64_t> EntryKey(uint32_t field, std::span<const std::byte> entry) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::optional<uint64_t> id;
  uint64_t domain = 0;
  protozero::pbf_reader reader(reinterpret_cast<const char*>(entry.data()), entry.size());
  while (reader.next()) {
    const bool is_number = reader.wire_type() == protozero::pbf_wire_type::varint;
    if (reader.tag() == 1 && is_number) {
      id = reader.get_uint64();
      if (!HasArbitraryIds(field)) return id;
    } else if (reader.tag() == 2 && is_number) {
      domain = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
  return id ? std::optional(*id ^ domain * kOdd) : std::nullopt;
}

}  // namespace

bool EntrySet::Insert(uint32_t field, uint64_t id) {
  if (field >= kinds_.size()) return true;
  Kind& kind = kinds_[field];
  if (HasArbitraryIds(field)) {
    return kind.others.size() >= kMaxArbitraryIds || kind.others.insert(id).second;
  }
  if (Contains(field, id)) return false;
  // One entry may name any id up to four million; room is made only for as many as were defined.
  const size_t most = kDenseIdsAnEntry * (++kind.count + 1);
  if (id < most) {
    if (id >= kind.dense.size()) kind.dense.resize(std::min<size_t>(most, id + id / 2 + 64));
    kind.dense[id] = true;
  } else {
    kind.others.insert(id);
  }
  kind.largest = std::max(kind.largest, id);
  return true;
}

bool EntrySet::Contains(uint32_t field, uint64_t id) const {
  if (field >= kinds_.size()) return false;
  const Kind& kind = kinds_[field];
  return (id < kind.dense.size() && kind.dense[id]) || kind.others.contains(id);
}

uint64_t EntrySet::LargestId(uint32_t field) const {
  return field < kinds_.size() ? kinds_[field].largest : 0;
}

size_t EntrySet::bytes() const {
  size_t bytes = sizeof(*this);
  for (const Kind& kind : kinds_) {
    bytes += kind.dense.capacity() / 8 + kind.others.size() * kOtherIdBytes;
  }
  return bytes;
}

bool ForEachEntry(std::span<const std::byte> dictionary, const TakeEntry& take) {
  try {
    const auto* begin = reinterpret_cast<const char*>(dictionary.data());
    protozero::pbf_reader reader(begin, dictionary.size());
    const char* entry = begin;
    while (reader.next()) {
      const uint32_t field = reader.tag();
      if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        entry = reader.data().data();
        continue;
      }
      const protozero::data_view content = reader.get_view();
      const auto id = EntryKey(field, std::as_bytes(std::span(content.data(), content.size())));
      const char* const end = content.data() + content.size();
      if (!id || (!HasArbitraryIds(field) && (*id == 0 || *id > kMaxEntryId))) return false;
      take(field, *id, std::string_view(entry, static_cast<size_t>(end - entry)));
      entry = end;
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

std::string_view TextOfEntry(std::string_view entry) {
  try {
    protozero::pbf_reader outer(entry.data(), entry.size());
    if (!outer.next() || outer.wire_type() != protozero::pbf_wire_type::length_delimited) return {};
    protozero::pbf_reader text(outer.get_view());
    if (!text.next(v1::Text::kTextFieldNumber)) return {};
    const protozero::data_view view = text.get_view();
    return {view.data(), view.size()};
  } catch (const protozero::exception&) {
    return {};
  }
}

}  // namespace ranktap::collector
