#include "collector/trace/marked_lines.h"

#include <algorithm>
#include <cstring>

namespace ranktap::collector {

std::vector<std::string_view> MarkedLines(const Trace& trace, std::string_view domain,
                                          std::string_view name) {
  std::vector<std::string_view> lines;
  for (const MarkedLine& line : MarkedLinesWithRows(trace, domain, name)) {
    lines.push_back(line.text);
  }
  return lines;
}

std::vector<MarkedLine> MarkedLinesWithRows(const Trace& trace, std::string_view domain,
                                            std::string_view name) {
  std::vector<MarkedLine> lines;
  for (uint32_t i = 0; i < trace.marks.size(); ++i) {
    const uint32_t payload = trace.marks.inline_payload.At(i);
    if (payload == 0 || payload > trace.payloads.size() ||
        trace.dictionary.Domain(trace.marks.domain[i]) != domain ||
        trace.dictionary.String(trace.marks.name[i]) != name) {
      continue;
    }
    std::string_view text = trace.payloads[payload - 1];
    uint64_t head[2] = {};  // schema, bytes
    if (text.size() < sizeof(head)) continue;
    std::memcpy(head, text.data(), sizeof(head));
    text = text.substr(sizeof(head), head[1]);
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      lines.push_back({i, text.substr(0, end)});
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return lines;
}

}  // namespace ranktap::collector
