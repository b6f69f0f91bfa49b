// Words of the formats in which PyTorch writes what it recorded: pickles' opcodes with arguments,
// JSON.
#pragma once

#include <span>
#include <string_view>

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

}  // namespace ranktap::fuzz
