// Shapes of an operator's inputs where a table has little room.
#pragma once

#include <string>
#include <string_view>

namespace ranktap::collector {

// "32x10, 64, +2" of "[[32, 10], [64], [], []]": '-' stands for a shape without dimensions, "+2"
// for two of them at the end, and a list of tensors keeps its brackets: "[2x3, 4]". Different
// shapes stay different. A text that is no list of shapes stays as it is.
std::string ShortShapes(std::string_view text);

}  // namespace ranktap::collector
