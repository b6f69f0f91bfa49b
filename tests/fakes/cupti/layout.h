// Sizes of the activity records, by CUPTI version. Every family grows at its end only (checked by a
// test against the deprecated structs), so an older version's record is a prefix of the newest.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace ranktap::standin {

// Bytes of a record of this kind in the CUPTI version the script gives; 0 for a kind that has none.
// GROW_RECORDS adds to every record, as a library newer than its reader would.
size_t RecordSize(uint32_t kind);

// A kind no client can know, for UNKNOWN_KIND_EVERY.
inline constexpr uint32_t kUnknownKind = 9999;

struct LayoutRow {
  uint32_t kind;
  uint32_t since;  // CUPTI version
  size_t bytes;
};
// Rows of one kind in the order of their versions.
extern const LayoutRow kLayouts[];
extern const size_t kLayoutsCount;

}  // namespace ranktap::standin
