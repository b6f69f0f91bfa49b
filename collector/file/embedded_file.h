// A file of this tree inside the program: the compiler has no #embed, and string literals of 250 KB
// cost it seconds.
#pragma once

#include <string_view>

// `name`_begin and `name`_end stand around the text of `file`.
#define RANKTAP_EMBED(name, file)                                             \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name  \
      "_end:\n.byte 0\n.popsection\n");                                       \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[]

namespace ranktap::collector {

// The text between two such names.
inline std::string_view EmbeddedText(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace ranktap::collector
