// The files of agent/sources/torch/python/ as bytes of the library's read-only data.
#include "agent/sources/torch/python_sources.h"

#include <array>

// RANKTAP_PYTHON_FILES is FILE(name) for each; CMake keeps the list and the dependency.
#define EMBED(name)                                                                \
  asm(".section .rodata\n"                                                         \
      ".local ranktap_py_" #name                                                   \
      "\n"                                                                         \
      "ranktap_py_" #name ": .incbin \"" RANKTAP_PYTHON_DIR "/" #name              \
      ".py\"\n"                                                                    \
      ".byte 0\n"                                                                  \
      ".local ranktap_py_end_" #name                                               \
      "\n"                                                                         \
      "ranktap_py_end_" #name                                                      \
      ":\n"                                                                        \
      ".previous\n");                                                              \
  extern "C" __attribute__((visibility("hidden"))) const char ranktap_py_##name[]; \
  extern "C" __attribute__((visibility("hidden"))) const char ranktap_py_end_##name[];

#define FILE(name) EMBED(name)
RANKTAP_PYTHON_FILES
#undef FILE

namespace ranktap::agent {
namespace {

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin) - 1};
}

}  // namespace

std::span<const PythonSource> PythonSources() {
#define FILE(name) PythonSource{#name, Between(ranktap_py_##name, ranktap_py_end_##name)},
  static const std::array sources = {RANKTAP_PYTHON_FILES};
#undef FILE
  return sources;
}

const char* FindPythonSource(std::string_view name) {
  for (const PythonSource& source : PythonSources()) {
    if (name == source.name) return source.text.data();
  }
  return "";
}

}  // namespace ranktap::agent
