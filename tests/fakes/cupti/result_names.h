// CUptiResult by name, generated from the vendor's header. Null for a number it does not have.
#pragma once

#include <cupti.h>

namespace ranktap::standin {

const char* ResultName(CUptiResult result);

}  // namespace ranktap::standin
