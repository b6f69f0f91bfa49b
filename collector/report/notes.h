// Notes that text shows in another way than the others.
#pragma once

#include <string_view>

namespace ranktap::collector {

// Such a note names rules, after a colon: text has one line for all of them.
inline constexpr std::string_view kNotChecked = "not checked, because ";

}  // namespace ranktap::collector
