// What differs between the vendor's versions, generated from the headers of one of them: callback
// ids and their names (null where a number is unused), and its number.
#pragma once

#include <cstdint>

namespace ranktap::standin {

extern const char* const kDriverNames[];
extern const uint32_t kDriverNamesCount;
extern const char* const kRuntimeNames[];
extern const uint32_t kRuntimeNamesCount;

// What cuptiGetVersion says, and whose records it writes: not the same in 12.0.
extern const uint32_t kLibraryVersion;
extern const uint32_t kLibraryLayout;

}  // namespace ranktap::standin
