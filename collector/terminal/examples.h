// Commands that `ranktap VERB --help` ends with.
#pragma once

#include <string>
#include <string_view>

namespace ranktap::collector {

// "Examples:" and two command lines; empty: the verb has none. `verb`: "ranktap report".
std::string ExamplesOf(std::string_view verb);

}  // namespace ranktap::collector
