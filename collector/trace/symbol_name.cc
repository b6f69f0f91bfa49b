#include "collector/trace/symbol_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ranktap::collector {

std::string ReadableKernelName(std::string_view mangled) {
  if (mangled.empty()) return "(name missing)";
  if (!mangled.starts_with("_Z")) return std::string(mangled);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && readable ? std::string(readable.get()) : std::string(mangled);
}

std::string ShortKernelName(std::string_view readable) {
  std::string_view name = readable;
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (!name.ends_with(")")) return std::string(name);
  // The parameter list is the last bracket at the outermost level.
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) {
      // "operator()" and "(anonymous namespace)" are names.
      return at == 0 || name.substr(0, at).ends_with("operator") ? std::string(name)
                                                                 : std::string(name.substr(0, at));
    }
  }
  return std::string(name);
}

}  // namespace ranktap::collector
