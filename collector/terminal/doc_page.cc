#include "collector/terminal/doc_page.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "collector/report/text/name_cut.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// [text](address) and ![text](address) become their text.
std::string WithoutLinks(std::string_view line) {
  std::string text;
  while (true) {
    const size_t begin = line.find('['), middle = line.find(']', begin);
    if (middle == line.npos) return text.append(line);
    const size_t end = line.substr(middle).starts_with("](") ? line.find(')', middle) : line.npos;
    if (end == line.npos) {
      text.append(line.substr(0, middle));
      line.remove_prefix(middle);
      continue;
    }
    const bool is_image = begin > 0 && line[begin - 1] == '!';
    text.append(line.substr(0, begin - (is_image ? 1 : 0)));
    text.append(line.substr(begin + 1, middle - begin - 1));
    line.remove_prefix(end + 1);
  }
}

// Words of `text` in lines of `width`, all but the first indented by `indent`.
std::string Wrapped(const std::string& text, size_t width, const std::string& first,
                    const std::string& indent) {
  std::string out = first, word;
  size_t column = TextWidth(first);
  bool is_first = true;
  for (std::istringstream words(text); words >> word; is_first = false) {
    if (!is_first && column + 1 + TextWidth(word) > width) {
      out += "\n" + indent;
      column = indent.size();
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += TextWidth(word);
  }
  return out + "\n";
}

// Its cells, without the bars; a bar in code has a backslash before it.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells(1);
  for (size_t i = line.find('|') + 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      cells.emplace_back();
    } else if (line.compare(i, 2, "\\|") != 0) {
      cells.back() += line[i];
    }
  }
  if (cells.size() > 1) cells.pop_back();
  for (std::string& cell : cells) {
    cell.erase(0, std::min(cell.find_first_not_of(' '), cell.size()));
    cell.erase(cell.find_last_not_of(' ') + 1);
  }
  return cells;
}

// Each row: its first cell, and below it the others.
std::string TableAsList(const std::vector<std::string>& lines, size_t width) {
  std::string text;
  for (size_t row = 2; row < lines.size(); ++row) {
    const std::vector<std::string> cells = CellsOf(lines[row]);
    text += Wrapped(cells[0].empty() ? "-" : cells[0], width, "  ", "  ");
    for (size_t c = 1; c < cells.size(); ++c) {
      if (!cells[c].empty()) text += Wrapped(cells[c], width, "      ", "      ");
    }
  }
  return text;
}

std::string TableLines(const std::vector<std::string>& lines, size_t width) {
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 1) continue;  // the rule below the heading
    rows.push_back(CellsOf(lines[i]));
    widths.resize(std::max(widths.size(), rows.back().size()));
    for (size_t c = 0; c < rows.back().size(); ++c) {
      widths[c] = std::max(widths[c], TextWidth(rows.back()[c]));
    }
  }
  size_t total = 0;
  for (const size_t one : widths) total += one + 2;
  if (total > width) return TableAsList(lines, width);
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      line += "  " + row[c] + std::string(widths[c] - TextWidth(row[c]), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

bool IsListItem(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  line.remove_prefix(digits);
  return digits == 0 ? line.starts_with("- ") || line.starts_with("* ") : line.starts_with(". ");
}

}  // namespace

std::string DocsFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const char* const place : {"../docs", "../../../docs"}) {
    const fs::path folder = (program.parent_path() / place).lexically_normal();
    if (fs::is_regular_file(folder / "commands/run.md", error)) return folder.string();
  }
  return "";
}

std::vector<std::string> DocTopics(const std::string& folder) {
  std::vector<std::string> topics;
  std::error_code error;
  for (const char* const part : {"", "commands", "tutorials", "how-to"}) {
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(folder) / part, error)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".md" || path.stem() == "README") continue;
      topics.push_back((fs::path(part) / path.stem()).string());
    }
  }
  std::ranges::sort(topics);
  return topics;
}

std::string PlainMarkdown(std::string_view markdown, size_t width) {
  std::string text, paragraph;
  std::vector<std::string> table;
  bool is_code = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += Wrapped(paragraph, width, "", "");
    paragraph.clear();
  };
  std::istringstream lines{std::string(markdown) + "\n"};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("|") && !is_code) {
      end_paragraph();
      table.push_back(WithoutLinks(line));
      continue;
    }
    if (!table.empty()) text += TableLines(table, width);
    table.clear();
    if (line.starts_with("```")) {
      end_paragraph();
      is_code = !is_code;
      continue;
    }
    if (is_code) {
      text += "    " + line + "\n";
      continue;
    }
    line = WithoutLinks(line);
    if (line.empty()) {
      end_paragraph();
      if (!text.ends_with("\n\n")) text += "\n";
    } else if (line.starts_with("#")) {
      end_paragraph();
      text += line.substr(line.find_first_not_of("# ")) + "\n";
    } else if (IsListItem(line)) {
      end_paragraph();
      paragraph = line;
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return text;
}

}  // namespace ranktap::collector
