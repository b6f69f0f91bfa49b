#include "collector/report/run_in_commands.h"

#include <cctype>
#include <string_view>

namespace ranktap::collector {
namespace {

constexpr std::string_view kPlaceholder = "RUN";

bool IsWordByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  bool is_plain = !word.empty();
  std::string quoted = "'";
  for (const char byte : word) {
    is_plain &= IsWordByte(byte) || kPlain.find(byte) != kPlain.npos;
    quoted += byte == '\'' ? "'\\''" : std::string(1, byte);
  }
  return is_plain ? word : quoted + "'";
}

// Whether `before` ends in "ranktap VERB ".
bool EndsInVerb(std::string_view before) {
  constexpr std::string_view kTool = "ranktap ";
  if (!before.ends_with(' ')) return false;
  before.remove_suffix(1);
  while (!before.empty() && std::islower(static_cast<unsigned char>(before.back())) != 0) {
    before.remove_suffix(1);
  }
  return before.ends_with(kTool);
}

void Replace(std::string_view inputs, std::string* text) {
  for (size_t at = text->find(kPlaceholder); at != text->npos;) {
    const size_t end = at + kPlaceholder.size();
    const bool is_word = end == text->size() || !IsWordByte((*text)[end]);
    size_t next = end;
    if (is_word && EndsInVerb(std::string_view(*text).substr(0, at))) {
      text->replace(at, kPlaceholder.size(), inputs);
      next = at + inputs.size();
    }
    at = text->find(kPlaceholder, next);
  }
}

}  // namespace

void NameTheRun(const std::vector<std::string>& inputs, Table* table) {
  std::string words;
  for (const std::string& input : inputs) words += (words.empty() ? "" : " ") + ShellWord(input);
  if (words.empty()) return;
  for (std::string& note : table->notes) Replace(words, &note);
  for (size_t column = 0; column < table->columns.size(); ++column) {
    const TableColumn& of = table->columns[column];
    if (of.shown != Shown::kProse && of.name != "command") continue;
    for (std::vector<Cell>& row : table->rows) {
      if (auto* const text = std::get_if<std::string>(&row[column])) Replace(words, text);
    }
  }
}

}  // namespace ranktap::collector
