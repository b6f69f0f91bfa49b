#include "collector/terminal/arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "collector/report/nearest_name.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/examples.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

CLI::Option* Of(void* option) { return static_cast<CLI::Option*>(option); }

std::vector<Arguments::Description>* described = nullptr;

// Lines of at most the screen's width (80 in a pipe), without CLI11's words for types.
class HelpText : public CLI::Formatter {
 public:
  explicit HelpText(const Choices* choices) : choices_(choices) {}

  std::string usage;

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (!usage.empty()) return "Usage: " + usage + "\n";
    std::string text = "Usage: " + name + " [OPTIONS]";
    for (const CLI::Option* const word : app->get_options({})) {
      if (word->get_positional()) text += " " + word->get_name(true, false);
    }
    return text + "\n";
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    constexpr size_t kHelpAt = 26;
    std::string text = "  " + NamesOf(option, is_positional) + ValueOf(option, is_positional);
    if (text.size() + 2 > kHelpAt)
      text += "\n" + std::string(kHelpAt, ' ');
    else
      text.resize(kHelpAt, ' ');
    AppendWrapped(option->get_description() + DefaultOf(option), kHelpAt, &text);
    return text + "\n";
  }

  // A single line break in it is a space.
  std::string make_description(const CLI::App* app) const override {
    std::string text;
    AppendWrapped(app->get_description(), 0, &text);
    return text + "\n";
  }

  // Rows of a name, two spaces or more and a text, which is wrapped below itself.
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    std::istringstream lines(app->get_footer());
    for (std::string line; std::getline(lines, line);) {
      const size_t name = line.find_first_not_of(' '), gap = line.find("  ", name);
      const size_t at = std::min(line.size(), line.find_first_not_of(' ', gap));
      text += '\n' + line.substr(0, at);
      AppendWrapped(line.substr(at), at, &text);
    }
    if (!text.empty()) text += "\n";
    return text + ExamplesOf(app->get_name());
  }

 private:
  // The words from column `at` on, which the text has reached.
  void AppendWrapped(const std::string& said, size_t at, std::string* text) const {
    size_t column = at;
    std::istringstream words(said);
    for (std::string word; words >> word;) {
      if (column > at && column + 1 + word.size() > width_) {
        *text += '\n' + std::string(at, ' ');
        column = at;
      }
      if (column > at) *text += ' ';
      column += word.size() + (column > at ? 1 : 0);
      *text += word;
    }
  }

  // Without what CLI11 adds to say which value a flag stands for: "--tensors{1}".
  static std::string NamesOf(const CLI::Option* option, bool is_positional) {
    std::string names = option->get_name(is_positional, true);
    for (size_t at; (at = names.find('{')) != names.npos;) {
      names.erase(at, names.find('}', at) + 1 - at);
    }
    return names;
  }

  std::string ValueOf(const CLI::Option* option, bool is_positional) const {
    if (is_positional || option->get_items_expected_max() == 0) return "";
    const auto known = choices_->find(option);
    if (known == choices_->end() || !option->get_type_name().starts_with("one of")) {
      return " " + option->get_type_name();
    }
    std::string text;
    for (const std::string& value : known->second) text += (text.empty() ? " " : "|") + value;
    return text;
  }

  static std::string DefaultOf(const CLI::Option* option) {
    const std::string value = option->get_default_str();
    return value.empty() ? "" : " (default " + value + ")";
  }

  const Choices* choices_;
  size_t width_ =
      std::clamp<size_t>(OutputWidth(STDOUT_FILENO) == 0 ? 80 : OutputWidth(1), 60, 100);
};

// For an option that there is not; CLI11 names it at the end of its sentence.
std::string Suggestion(const CLI::ParseError& error, const CLI::App& app) {
  const std::string said = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return "";
  const size_t dashes = said.find(" -");
  if (dashes == said.npos) return "";
  const std::string word =
      said.substr(dashes + 1, said.find_first_of(" =", dashes + 1) - dashes - 1);
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return DidYouMean(word, known);
}

}  // namespace

struct Arguments::Parser {
  CLI::App app;
  Choices choices;
  std::shared_ptr<HelpText> help;
};

Arguments::Option& Arguments::Option::Required() {
  Of(option_)->required();
  return *this;
}
Arguments::Option& Arguments::Option::ShowsDefault() {
  Of(option_)->capture_default_str();
  return *this;
}
Arguments::Option& Arguments::Option::Group(const std::string& heading) {
  Of(option_)->group(heading);
  return *this;
}
Arguments::Option& Arguments::Option::Excludes(const Option& other) {
  Of(option_)->excludes(Of(other.option_));
  return *this;
}
Arguments::Option& Arguments::Option::OneOf(std::vector<std::string> values) {
  CLI::Validator member = CLI::IsMember(values);
  Of(option_)->check(member.description(""))->type_name("one of");
  static_cast<Parser*>(parser_)->choices[Of(option_)] = std::move(values);
  return *this;
}
Arguments::Option& Arguments::Option::From(int64_t least, int64_t most) {
  Of(option_)->check(CLI::Range(least, most).description(""));
  return *this;
}
Arguments::Option& Arguments::Option::Positive() {
  Of(option_)->check(CLI::Validator(CLI::PositiveNumber).description(""));
  return *this;
}
Arguments::Option& Arguments::Option::Repeatable() {
  Of(option_)->take_all()->allow_extra_args(false);
  return *this;
}
Arguments::Option& Arguments::Option::CommaSeparated() {
  Of(option_)->delimiter(',');
  return *this;
}

Arguments::Option& Arguments::Option::Suggests(const std::vector<std::string_view>& values) {
  static_cast<Parser*>(parser_)->choices[Of(option_)].assign(values.begin(), values.end());
  return *this;
}
Arguments::Option& Arguments::Option::Says(const std::string& value) {
  Of(option_)->type_name(value);
  return *this;
}

void Arguments::DescribeInto(std::vector<Description>* all) { described = all; }

Arguments::Arguments(const std::string& description, const std::string& name)
    : parser_(new Parser{CLI::App(description, name), {}, nullptr}) {
  parser_->help = std::make_shared<HelpText>(&parser_->choices);
  parser_->app.formatter(parser_->help);
  const char* const kGroup = "Every command";
  Add("--color", &Style().color, "colours: on a terminal (auto), always or never; see NO_COLOR")
      .OneOf({"auto", "always", "never"})
      .Group(kGroup);
  AddFlag("--quiet", &Style().quiet, "no progress, no pager and no summary").Group(kGroup);
}
Arguments::~Arguments() = default;

Arguments::Option Arguments::MakeOption(void* option) { return {option, parser_.get()}; }

template <typename T>
Arguments::Option Arguments::AddOption(const std::string& names, T* value,
                                       const std::string& help) {
  CLI::Option* const option = parser_->app.add_option(names, *value, help);
  const bool is_number = std::is_arithmetic_v<T> || std::is_same_v<T, std::optional<int64_t>> ||
                         std::is_same_v<T, std::vector<uint32_t>>;
  option->type_name(is_number ? "N" : "VALUE");
  return MakeOption(option);
}
Arguments::Option Arguments::Add(const std::string& names, std::string* value,
                                 const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, int* value, const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, uint32_t* value,
                                 const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, int64_t* value,
                                 const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, uint64_t* value,
                                 const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, double* value, const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, std::optional<int64_t>* value,
                                 const std::string& help) {
  return AddOption(names, value, help);
}
Arguments::Option Arguments::Add(const std::string& names, std::vector<std::string>* values,
                                 const std::string& help) {
  return AddOption(names, values, help);
}
Arguments::Option Arguments::Add(const std::string& names, std::vector<uint32_t>* values,
                                 const std::string& help) {
  return AddOption(names, values, help);
}
Arguments::Option Arguments::AddFlag(const std::string& names, bool* given,
                                     const std::string& help) {
  return MakeOption(parser_->app.add_flag(names, *given, help));
}
Arguments::Option Arguments::AddFlag(const std::string& name, const std::string& plain,
                                     std::string* value, const std::string& help) {
  return MakeOption(parser_->app.add_flag(name + "{" + plain + "}", *value, help));
}
void Arguments::SetUsage(const std::string& usage) { parser_->help->usage = usage; }
void Arguments::AddFooter(const std::string& text) { parser_->app.footer(text); }

bool Arguments::TakesWord(const std::string& name) const {
  const CLI::Option* const option = parser_->app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

void Arguments::Describe(std::vector<Description>* all) const {
  for (const CLI::Option* const option : parser_->app.get_options()) {
    if (option->get_positional()) continue;
    Description& one = all->emplace_back();
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    one.takes_word = option->get_items_expected_max() > 0;
    one.help = option->get_description();
    const auto known = parser_->choices.find(option);
    if (known != parser_->choices.end()) one.values = known->second;
  }
}

std::optional<int> Arguments::Parse(std::vector<std::string> arguments) {
  CLI::App& app = parser_->app;
  if (described != nullptr) {
    Describe(described);
    return kSuccess;
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    Complain(error.what() + Suggestion(error, app));
    std::fprintf(stderr, "try: %s --help\n", app.get_name().c_str());
    return kWrongUsage;
  }
}

}  // namespace ranktap::collector
