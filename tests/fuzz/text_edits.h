// Edits of a file in a format that other tools wrote: bytes overwritten, words of the format put
// in, parts left out or repeated, the end cut off.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/edits.h"

namespace ranktap::fuzz {

inline constexpr size_t kLargestFile = 1 << 16;

inline void EditText(Input* input, std::span<const std::string_view> words, std::string* text) {
  constexpr int kMaxEdits = 32;
  for (int i = 0; i < kMaxEdits && !input->empty() && !text->empty(); ++i) {
    const auto kind = input->Take<uint8_t>();
    const size_t at = input->Take<uint16_t>() % text->size();
    const size_t size = 1 + input->Take<uint8_t>() % 64;
    switch (kind % 6) {
      case 0:
        (*text)[at] = static_cast<char>(input->Take<uint8_t>());
        break;
      case 1:
        text->insert(at, words[size % words.size()]);
        break;
      case 2:
        text->replace(at, words[size % words.size()].size(), words[size % words.size()]);
        break;
      case 3:
        text->erase(at, size);
        break;
      case 4:
        if (text->size() < kLargestFile) text->insert(at, text->substr(at, size * 8));
        break;
      default:
        if (kind == 5) text->resize(at);
        text->insert(at, input->TakeText(size));
        break;
    }
  }
}

}  // namespace ranktap::fuzz
