#include "collector/export/memory/memory_picture.h"

#include <fmt/core.h>

#include <filesystem>

namespace ranktap::collector {

std::string EscapedForXml(std::string_view text) {
  std::string escaped;
  for (const char byte : text) {
    switch (byte) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML has no control characters, and a name may hold any byte.
        escaped +=
            static_cast<unsigned char>(byte) < 0x20 || static_cast<unsigned char>(byte) > 0x7e
                ? '?'
                : byte;
    }
  }
  return escaped;
}

std::string DescribePicture(const Trace& trace) {
  const std::filesystem::path path(trace.path);
  const std::filesystem::path run = path.has_parent_path() ? path.parent_path().filename() : path;
  const std::string of = trace.is_ours() ? run.string() : path.filename().string();
  return trace.info.rank ? fmt::format("{}, rank {}", of, *trace.info.rank) : of;
}

}  // namespace ranktap::collector
