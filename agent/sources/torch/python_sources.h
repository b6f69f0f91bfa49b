// agent/sources/torch/python/, embedded in the library: it cannot be left behind when the library
// is copied. Runs on: any thread.  May not: be changed after the build.
#pragma once

#include <span>
#include <string_view>

namespace ranktap::agent {

struct PythonSource {
  const char* name;
  std::string_view text;  // NUL-terminated
};

std::span<const PythonSource> PythonSources();

// NUL-terminated; empty when there is none of this name.
const char* FindPythonSource(std::string_view name);

}  // namespace ranktap::agent
