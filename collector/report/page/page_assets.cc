#include "collector/report/page/page_assets.h"

#include "collector/file/embedded_file.h"

// clang-format off
RANKTAP_EMBED(ranktap_page_script, RANKTAP_PAGE_SCRIPT);
RANKTAP_EMBED(ranktap_page_style, RANKTAP_PAGE_STYLE);
RANKTAP_EMBED(ranktap_d3_script, RANKTAP_D3_SCRIPT);
RANKTAP_EMBED(ranktap_d3_licence, RANKTAP_D3_LICENCE);
// clang-format on

namespace ranktap::collector {

std::string_view PageScript() {
  return EmbeddedText(ranktap_page_script_begin, ranktap_page_script_end);
}
std::string_view PageStyle() {
  return EmbeddedText(ranktap_page_style_begin, ranktap_page_style_end);
}
std::string_view D3Script() { return EmbeddedText(ranktap_d3_script_begin, ranktap_d3_script_end); }
std::string_view D3Licence() {
  return EmbeddedText(ranktap_d3_licence_begin, ranktap_d3_licence_end);
}

}  // namespace ranktap::collector
