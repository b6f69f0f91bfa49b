// Nodes of a torch.fx graph, from its text: Python as print_readable() writes it (debug traces,
// TORCH_TRACE), or format_node()'s lines, which Inductor's generated files hold as comments.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "collector/trace/known_arithmetic.h"

namespace ranktap::collector {

// By the node's name. A node of no PyTorch operator (a placeholder, getitem) has no name in it.
using FxNodes = std::map<std::string, FusedOperator, std::less<>>;

// One line of either form; `line`: the program's, from the last "# File:" comment, which it keeps.
// Total over any text. Sizes may be symbols and expressions of them: "[s0, 2*s1]".
void ReadFxLine(std::string_view text, std::string* line, FxNodes* nodes);

// Its name, where `text` makes a node: "%mul : ..." and "mul: ... = ...". Empty: it does not.
std::string_view FxNodeOf(std::string_view text);

}  // namespace ranktap::collector
