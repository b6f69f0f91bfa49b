// `ranktap report … -o FILE`: what would be printed goes into a file.
#pragma once

#include <functional>
#include <string>

namespace ranktap::collector {

// Calls print() while standard output is the file, which gets its name when all of it is there and
// print() has returned kSuccess. Returns the exit status, after a complaint where the file could
// not be written. Empty: standard output stays.
int PrintInto(const std::string& path, const std::function<int()>& print);

}  // namespace ranktap::collector
