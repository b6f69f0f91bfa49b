#include "collector/file/checkpoint_parts.h"

#include <protozero/pbf_reader.hpp>

#include "collector/file/trace_bounds.h"

namespace ranktap::collector {
namespace {

// Most bytes of an account: 64 losses and its other numbers take less.
constexpr size_t kMaxAccountBytes = 1024;
constexpr size_t kMostClocks = 1024;
// The most that a checkpoint's fields may cost, known before they are parsed.
class CheckpointBounds {
 public:
  bool Allow(uint32_t field, size_t bytes) {
    total_ += bytes;
    if (total_ > kMaxCheckpointRest) return false;
    switch (field) {
      case v1::Checkpoint::kHelloFieldNumber:
        return (hello_ += bytes) <= kMaxHelloBytes + kMaxHelloBytes / 8;
      case v1::Checkpoint::kPositionsFieldNumber:
        return ++positions_ <= kMaxWriters;
      case v1::Checkpoint::kAccountsFieldNumber:
        return bytes <= kMaxAccountBytes && ++accounts_ <= kMaxWriters;
      case v1::Checkpoint::kClocksFieldNumber:
        return ++clocks_ <= kMostClocks;
      default:
        return true;
    }
  }

 private:
  size_t total_ = 0, hello_ = 0, positions_ = 0, accounts_ = 0, clocks_ = 0;
};

}  // namespace

bool ParseCheckpoint(std::span<const std::byte> bytes, v1::Checkpoint* rest,
                     std::string* dictionary) {
  std::string others;
  CheckpointBounds bounds;
  try {
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    protozero::pbf_reader reader(begin, bytes.size());
    const char* field = begin;
    while (reader.next()) {
      const bool is_dictionary = reader.tag() == v1::Checkpoint::kDictionaryFieldNumber &&
                                 reader.wire_type() == protozero::pbf_wire_type::length_delimited;
      if (is_dictionary) {
        const protozero::data_view view = reader.get_view();
        dictionary->append(view.data(), view.size());
      } else {
        reader.skip();
      }
      const char* const next = reader.data().data();
      if (!is_dictionary) {
        if (!bounds.Allow(reader.tag(), static_cast<size_t>(next - field))) return false;
        others.append(field, next);
      }
      field = next;
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return rest->ParseFromString(others) && HasFewItems(rest->hello());
}

// To a Checkpoint these are fields that it does not know, and keeps.
v1::CheckpointOfKept KeptPartOf(const v1::Checkpoint& rest) {
  v1::CheckpointOfKept kept;
  (void)kept.ParseFromString(rest.SerializeAsString());
  return kept;
}

bool ForEachBlockEntry(std::span<const std::byte> index, const TakeBlockEntry& take) {
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(index.data()), index.size());
    while (reader.next()) {
      const bool is_entry = reader.tag() == v1::Index::kBlocksFieldNumber &&
                            reader.wire_type() == protozero::pbf_wire_type::length_delimited;
      if (!is_entry) {
        reader.skip();
        continue;
      }
      const protozero::data_view view = reader.get_view();
      take(std::string_view(view.data(), view.size()));
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

}  // namespace ranktap::collector
