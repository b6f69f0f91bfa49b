// The command that a person may have meant by a word that is none.
#pragma once

#include <string>
#include <vector>

namespace ranktap::collector {

// "no command 'kernels': it is a report: ranktap report RUN kernels". `arguments`: the word, and
// what follows it.
std::string NoCommand(const std::vector<std::string>& arguments);

}  // namespace ranktap::collector
