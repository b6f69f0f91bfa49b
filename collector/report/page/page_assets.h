// The page's script, style and d3, as the build put them into the program.
#pragma once

#include <string_view>

namespace ranktap::collector {

std::string_view PageScript();
std::string_view PageStyle();
std::string_view D3Script();  // Debian's node-d3, with its licence as a comment before it
std::string_view D3Licence();

}  // namespace ranktap::collector
