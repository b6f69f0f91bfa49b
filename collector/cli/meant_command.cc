#include "collector/cli/meant_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/cli/known_words.h"
#include "collector/report/nearest_name.h"
#include "collector/report/report.h"

namespace ranktap::collector {
namespace {

// What other tools call it.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"record", "run"},     {"profile", "run"},  {"trace", "run"},    {"launch", "run"},
    {"attach", "start"},   {"show", "report"},  {"stats", "report"}, {"analyze", "report"},
    {"summary", "report"}, {"open", "view"},    {"ui", "serve"},     {"web", "serve"},
    {"convert", "export"}, {"check", "verify"}, {"query", "sql"},    {"daemon", "collect"}};

// As for a shell, where a word has a space in it.
std::string Quoted(const std::string& word) {
  if (word.find_first_of(" '\"$&;|<>()*?") == word.npos) return word;
  std::string quoted = "'";
  for (const char byte : word) quoted += byte == '\'' ? "'\\''" : std::string(1, byte);
  return quoted + "'";
}

// "ranktap report A B diff" of `diff A B`.
std::string AsReport(const std::vector<std::string>& arguments) {
  std::string runs, options;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const bool is_option = !options.empty() || arguments[i].starts_with("-");
    (is_option ? options : runs) += " " + Quoted(arguments[i]);
  }
  const Report* const report = FindReport(arguments[0]);
  if (runs.empty()) runs = report->compare != nullptr ? " RUN1 RUN2" : " RUN";
  return fmt::format("ranktap report{} {}{}", runs, arguments[0], options);
}

}  // namespace

std::string NoCommand(const std::vector<std::string>& arguments) {
  const std::string& word = arguments[0];
  if (FindReport(word) != nullptr) {
    return fmt::format("no command '{}'; it is a report: {}", word, AsReport(arguments));
  }
  if (word.starts_with("-")) {
    constexpr std::array<std::string_view, 4> kOptions = {"--help", "--version", "--quiet",
                                                          "--color"};
    return fmt::format("no option '{}'{}; ranktap --help lists the commands", word,
                       DidYouMean(word, kOptions));
  }
  for (const auto& [theirs, ours] : kElsewhere) {
    if (word == theirs) return fmt::format("no command '{}'; did you mean '{}'?", word, ours);
  }
  return fmt::format("no command '{}'{}; ranktap --help lists them", word,
                     DidYouMean(word, CommandNames()));
}

}  // namespace ranktap::collector
