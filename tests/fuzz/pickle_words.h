// The formats in which PyTorch writes what it recorded, pickles and JSON: their words, and files
// that a fuzzer makes of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/edits.h"
#include "tests/fuzz/text_edits.h"

namespace ranktap::fuzz {

using Words = std::span<const std::string_view>;

inline constexpr std::string_view kPickleWords[] = {"(",
                                                    "]",
                                                    "}",
                                                    "e",
                                                    "u",
                                                    "s",
                                                    "a",
                                                    "t",
                                                    "\x85",
                                                    "\x86",
                                                    "\x87",
                                                    "\x94",
                                                    "h\x01",
                                                    "q\x02",
                                                    "0",
                                                    "1",
                                                    "2",
                                                    "N",
                                                    "\x88",
                                                    "\x89",
                                                    "c__builtin__\neval\n",
                                                    "\x8c\xff",
                                                    "X\xff\xff\xff\x7f",
                                                    "\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
                                                    "\x8a\xff",
                                                    "\x8b\xff\xff\xff\xff",
                                                    "I1\n",
                                                    "L9999999999999999999L\n",
                                                    "F1e999\n",
                                                    "R",
                                                    "b",
                                                    "\x93",
                                                    ".",
                                                    "\x95\xff\xff\xff\xff\xff\xff\xff\xff",
                                                    "j\xff\xff\xff\xff",
                                                    "r\xff\xff\xff\xff"};
inline constexpr std::string_view kJsonWords[] = {"[",
                                                  "]",
                                                  ",",
                                                  "-1",
                                                  "1e308",
                                                  "null",
                                                  "\"",
                                                  "{",
                                                  "}",
                                                  "9223372036854775807",
                                                  "18446744073709551616",
                                                  "-9223372036854775808",
                                                  ".",
                                                  "e",
                                                  " "};

struct Recorded {
  bool is_pickle = false;
  std::string text;
};

// An edited copy of `pickle` or of `json`, or one of four times what the input itself holds.
inline Recorded TakeRecorded(Input* input, const std::string& pickle, std::string_view json) {
  const auto mode = input->Take<uint8_t>();
  Recorded recorded{.is_pickle = (mode & 1) != 0};
  if ((mode & 6) == 0) {
    recorded.text = input->TakeText(SIZE_MAX);
    return recorded;
  }
  recorded.text = recorded.is_pickle ? pickle : std::string(json);
  EditText(input, recorded.is_pickle ? Words(kPickleWords) : kJsonWords, &recorded.text);
  return recorded;
}

}  // namespace ranktap::fuzz
