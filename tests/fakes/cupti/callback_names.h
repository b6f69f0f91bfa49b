// Callback ids and their names, generated from the vendor's headers. Null where a number is unused.
#pragma once

#include <cstdint>

namespace ranktap::standin {

extern const char* const kDriverNames[];
extern const uint32_t kDriverNamesCount;
extern const char* const kRuntimeNames[];
extern const uint32_t kRuntimeNamesCount;

}  // namespace ranktap::standin
