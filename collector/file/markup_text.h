// Names in SVG, XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace ranktap::collector {

// Printable, and without what markup takes for its own: for contents and for quoted attributes.
std::string MarkupText(std::string_view text);

}  // namespace ranktap::collector
