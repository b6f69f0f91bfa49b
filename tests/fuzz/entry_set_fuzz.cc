// Dictionaries with any fields and ids: the set agrees with a plain one, and takes what it may.
#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "collector/file/entry_set.h"
#include "collector/file/trace_state.h"
#include "tests/fuzz/edits.h"

using namespace ranktap;
using namespace ranktap::collector;

namespace {

void Require(bool ok) {
  if (!ok) __builtin_trap();
}

// An id near the last one, or any.
uint64_t NextId(fuzz::Input* input, uint64_t last) {
  const auto mode = input->Take<uint8_t>();
  if (mode < 128) return last + 1 + mode % 4;
  return mode < 192 ? input->Take<uint32_t>() % (kMaxEntryId + 2) : input->Take<uint64_t>();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostBytes = 32u << 20, kEntryBytes = 40;
  fuzz::Input input(data, size);
  std::string dictionary;
  std::map<uint32_t, std::set<uint64_t>> plain;
  EntrySet set;
  size_t entries = 0;
  uint64_t last = 0;
  while (!input.empty()) {
    const auto choice = input.Take<uint8_t>();
    const uint32_t field = choice < 224 ? 1 + choice % 9 : 1 + input.Take<uint16_t>();
    const uint64_t id = last = NextId(&input, last);
    protozero::pbf_writer writer(dictionary);
    protozero::pbf_writer(writer, field).add_uint64(1, id);
    const bool is_new = plain[field].insert(id).second;
    const bool is_known_field = field <= 9;
    Require(set.Insert(field, id) == (is_new || !is_known_field));
    Require(set.Contains(field, id) == is_known_field);
    ++entries;
  }
  for (const auto& [field, ids] : plain) {
    if (field > 9) continue;
    if (!ids.contains(1)) Require(!set.Contains(field, 1));
    if (field != 5 && field != 6) Require(set.LargestId(field) == *ids.rbegin());
  }
  Require(set.bytes() <= kMostBytes + sizeof(set) &&
          set.bytes() <= sizeof(set) + 4096 + entries * 2 * kEntryBytes);
  // And through the wire: in one piece, and with its last byte cut off.
  TraceState state;
  std::string fresh;
  const auto bytes = std::as_bytes(std::span(dictionary));
  if (state.TakeNewEntries(bytes, &fresh)) {
    Require(state.dictionary() == fresh);
    TraceState restored;
    const std::string checkpoint = state.EncodeCheckpoint({});
    Require(restored.Restore(std::as_bytes(std::span(checkpoint))));
    Require(restored.dictionary() == fresh);
  }
  if (!bytes.empty()) {
    (void)ForEachEntry(bytes.first(bytes.size() - 1), [](uint32_t, uint64_t, std::string_view) {});
  }
  return 0;
}
