// `ranktap doctor`: what stands between this machine and a good trace.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "collector/cli/command.h"
#include "collector/doctor/finding.h"
#include "collector/file/json.h"
#include "collector/launch/injection.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/version.h"

namespace ranktap::collector {
namespace {

constexpr size_t kUsualWidth = 80;

struct Found {
  const Check* check;
  std::vector<Finding> findings;
};

// `text` broken over lines of `width`, each after the first behind `indent` spaces.
std::string Wrapped(const std::string& text, size_t width, size_t indent) {
  std::istringstream words(text);
  std::string result;
  size_t column = indent;
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string FormatFindings(const std::vector<Found>& found, size_t width) {
  constexpr size_t kIndent = 19;
  std::string text;
  for (const Found& of_check : found) {
    for (const Finding& finding : of_check.findings) {
      text += fmt::format("{:<8} {:<9} {}\n", NameOf(finding.severity), of_check.check->name,
                          Wrapped(Printable(finding.what), width, kIndent));
      if (finding.advice.empty()) continue;
      text += fmt::format("{:{}}{}\n", "", kIndent,
                          Wrapped("-> " + Printable(finding.advice), width, kIndent));
    }
  }
  return text;
}

std::string FormatFindingsJson(const std::vector<Found>& found, bool healthy) {
  Json object;
  object["ranktap"] = kVersion;
  object["healthy"] = healthy;
  object["findings"] = Json::array();
  for (const Found& of_check : found) {
    for (const Finding& finding : of_check.findings) {
      object["findings"].push_back({{"check", of_check.check->name},
                                    {"severity", NameOf(finding.severity)},
                                    {"what", finding.what},
                                    {"advice", finding.advice}});
    }
  }
  return WriteJson(object, 2, JsonOrder::kByName) + "\n";
}

std::string ChecksHelp() {
  std::string text = "Checks:\n";
  for (const Check& check : AllChecks()) {
    text += fmt::format("  {:<12}{}\n", check.name, check.question);
  }
  return text;
}

}  // namespace

int DoctorCommand(const std::vector<std::string>& arguments) {
  std::string format = "text", root, run;
  Arguments app(
      "Looks for what would keep ranktap from tracing here, and says what to do about it.",
      "ranktap doctor");
  app.Add("--run", &run, "the run to look at; without it the newest one here");
  app.Add("--format", &format, "text or json").ShowsDefault();
  app.Add("--root", &root, "look at this directory instead of the machine: for tests");
  app.AddFooter(ChecksHelp());
  if (const auto status = app.Parse(arguments)) return *status;
  if (format != "text" && format != "json") {
    Complain(fmt::format("no format '{}'; it is text or json", format));
    return kWrongUsage;
  }
  std::vector<std::string_view> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  HostView host(root, environment);
  host.agent_library = FindAgentLibrary(&host.agent_problem);
  host.run = run;
  std::vector<Found> found;
  bool healthy = true;
  for (const Check& check : AllChecks()) {
    found.push_back({&check, check.run(host)});
    for (const Finding& finding : found.back().findings) {
      healthy = healthy && finding.severity != Severity::kProblem;
    }
  }
  const size_t width = OutputWidth(STDOUT_FILENO);
  const std::string text =
      format == "json" ? FormatFindingsJson(found, healthy)
                       : FormatFindings(found, width == kUnlimitedWidth ? kUsualWidth : width);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return healthy ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
