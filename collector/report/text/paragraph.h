// Sentences broken into the lines of a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// What becomes of a word that is longer than a line.
enum class LongWord : uint8_t {
  kBroken,
  kWhole,  // it reaches over the edge: somebody may want to copy it
};

// Broken into lines of at most `width`, between words.
std::vector<std::string> Wrapped(std::string_view text, size_t width,
                                 LongWord long_word = LongWord::kBroken);

// Lines of `width` at most (0: one line), all but the first indented like what follows `head`.
std::string Paragraph(std::string_view head, std::string_view prose, size_t width,
                      LongWord long_word = LongWord::kBroken);

}  // namespace ranktap::collector
