#include "collector/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "collector/cli/command.h"

namespace ranktap::collector {
namespace {

CLI::Option* Of(void* option) { return static_cast<CLI::Option*>(option); }

}  // namespace

struct Arguments::Parser {
  CLI::App app;
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
  Of(option_)->check(CLI::IsMember(std::move(values)));
  return *this;
}
Arguments::Option& Arguments::Option::From(int64_t least, int64_t most) {
  Of(option_)->check(CLI::Range(least, most));
  return *this;
}
Arguments::Option& Arguments::Option::Positive() {
  Of(option_)->check(CLI::PositiveNumber);
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

Arguments::Arguments(const std::string& description, const std::string& name)
    : parser_(new Parser{CLI::App(description, name)}) {}
Arguments::~Arguments() = default;

template <typename T>
Arguments::Option Arguments::AddOption(const std::string& names, T* value,
                                       const std::string& help) {
  return Option(parser_->app.add_option(names, *value, help));
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
  return Option(parser_->app.add_flag(names, *given, help));
}
Arguments::Option Arguments::AddFlag(const std::string& name, const std::string& plain,
                                     std::string* value, const std::string& help) {
  return Option(parser_->app.add_flag(name + "{" + plain + "}", *value, help));
}
void Arguments::AddFooter(const std::string& text) { parser_->app.footer(text); }

bool Arguments::TakesWord(const std::string& name) const {
  const CLI::Option* const option = parser_->app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

std::optional<int> Arguments::Parse(std::vector<std::string> arguments) {
  CLI::App& app = parser_->app;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    Complain(error.what());
    std::fprintf(stderr, "try: %s --help\n", app.get_name().c_str());
    return kWrongUsage;
  }
}

}  // namespace ranktap::collector
