// Names that are longer than the place they have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// Code points: one column each, which holds for all but wide scripts.
size_t TextWidth(std::string_view text);

// The first `count` code points.
std::string_view TextHead(std::string_view text, size_t count);

// "DistributedDataParallel.module.": what dotted names begin with, but for those that are a part of
// it. Empty where it would save little.
std::string CommonPath(const std::vector<std::string>& names);

// Each of `names` at most `width` wide, in the same order. A function goes without its parameters
// first, then without namespaces and lambdas, then a name loses its middle: both ends tell more
// than the first half, since templates begin alike. Names that would look the same then show where
// they differ instead of their end; where that does not fit they end in "~1", "~2".
std::vector<std::string> CutNames(const std::vector<std::string>& names, size_t width);

}  // namespace ranktap::collector
