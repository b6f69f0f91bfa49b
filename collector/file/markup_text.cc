#include "collector/file/markup_text.h"

#include "collector/file/printable.h"

namespace ranktap::collector {

std::string MarkupText(std::string_view text) {
  std::string out;
  for (const char byte : Printable(text)) {
    switch (byte) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += byte;
    }
  }
  return out;
}

}  // namespace ranktap::collector
