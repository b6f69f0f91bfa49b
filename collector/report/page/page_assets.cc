#include "collector/report/page/page_assets.h"

// The compiler has no #embed; string literals of 250 KB cost it seconds.
#define RANKTAP_EMBED(name, file)                                             \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name  \
      "_end:\n.byte 0\n.popsection\n");                                       \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[]

// clang-format off
RANKTAP_EMBED(ranktap_page_script, RANKTAP_PAGE_SCRIPT);
RANKTAP_EMBED(ranktap_page_style, RANKTAP_PAGE_STYLE);
RANKTAP_EMBED(ranktap_d3_script, RANKTAP_D3_SCRIPT);
RANKTAP_EMBED(ranktap_d3_licence, RANKTAP_D3_LICENCE);
// clang-format on

namespace ranktap::collector {
namespace {

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view PageScript() {
  return Between(ranktap_page_script_begin, ranktap_page_script_end);
}
std::string_view PageStyle() { return Between(ranktap_page_style_begin, ranktap_page_style_end); }
std::string_view D3Script() { return Between(ranktap_d3_script_begin, ranktap_d3_script_end); }
std::string_view D3Licence() { return Between(ranktap_d3_licence_begin, ranktap_d3_licence_end); }

}  // namespace ranktap::collector
