// Symbols of CPython, wherever it is linked.
// Runs on: the starting thread.  May not: see python_place.h.
#include "agent/sources/samples/python_place.h"

#include <dlfcn.h>
#include <link.h>

#include <charconv>
#include <cstring>
#include <string_view>

namespace ranktap::agent::samples {
namespace {

uint64_t AddressOf(const char* symbol) {
  return reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, symbol));
}

// "3.9.18 (main, ...)": 3.11 and newer have the number itself. A text of static storage.
uint32_t VersionInText() {
  const auto text_of = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  if (text_of == nullptr) return 0;
  const std::string_view text = text_of();
  uint32_t minor = 0;
  if (!text.starts_with("3.")) return 0;
  (void)std::from_chars(text.data() + 2, text.data() + text.size(), minor);
  return 0x0300'0000 | minor << 16;
}

}  // namespace

proto::PythonPlace FindPythonPlace() {
  proto::PythonPlace place{.runtime = AddressOf("_PyRuntime"),
                           .runtime_bytes = 0,
                           .code_type = AddressOf("PyCode_Type"),
                           .version = 0,
                           .counts_references = AddressOf("_Py_NegativeRefcount") != 0};
  if (place.runtime == 0) return place;
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(place.runtime), &info,
              reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
      symbol != nullptr) {
    place.runtime_bytes = symbol->st_size;
  }
  const auto* const version = reinterpret_cast<const uint32_t*>(dlsym(RTLD_DEFAULT, "Py_Version"));
  place.version = version != nullptr ? *version : VersionInText();
  return place;
}

}  // namespace ranktap::agent::samples
