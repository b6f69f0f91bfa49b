#include "collector/report/text/paragraph.h"

#include <algorithm>

#include "collector/file/printable.h"
#include "collector/report/text/name_cut.h"

namespace ranktap::collector {

std::vector<std::string> Wrapped(std::string_view text, size_t width, LongWord long_word) {
  std::vector<std::string> lines(1);
  const auto add = [&](std::string_view word) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (TextWidth(line) + 1 + TextWidth(word) <= width) {
      line += ' ' + std::string(word);
    } else {
      lines.emplace_back(word);
    }
  };
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    while (long_word == LongWord::kBroken && TextWidth(word) > width) {
      add(TextHead(word, width));
      word.remove_prefix(TextHead(word, width).size());
    }
    add(word);
  }
  return lines;
}

std::string Paragraph(std::string_view head, std::string_view prose, size_t width,
                      LongWord long_word) {
  constexpr size_t kNarrowest = 20;
  const std::string text = Printable(prose);
  if (width == 0) return std::string(head) + text + "\n";
  std::string paragraph;
  const size_t room = std::max(width - std::min(width, head.size()), kNarrowest);
  for (const std::string& line : Wrapped(text, room, long_word)) {
    paragraph += paragraph.empty() ? std::string(head) : std::string(head.size(), ' ');
    paragraph += line + "\n";
  }
  return paragraph;
}

}  // namespace ranktap::collector
