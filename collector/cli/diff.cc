// `ranktap diff BASE... -- RUN...`: the gate. Ends with 0, 3 for a regression, 4 where it cannot
// tell.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "collector/cli/command.h"
#include "collector/cli/compared_runs.h"
#include "collector/launch/run_and_wait.h"
#include "collector/report/gate/gate.h"
#include "collector/report/human_units.h"
#include "collector/report/text/gate_text.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/report_file.h"
#include "collector/terminal/table_view.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

constexpr const char* kUsualLimit = "step>3%";
constexpr int kMostRepeats = 1000;

struct GateRequest {
  std::vector<std::string> base, runs;
  std::vector<std::string> fail_if;
  std::vector<GateLimit> limits;
  std::string format = "text", output;
  int repeat = 0;
  std::string base_command, with_command, folder = "ranktap-diff", level;
};

// CLI11 forgets where "--" stood, so a word takes its place that no path can be.
const std::string kBetween(1, '\0');

std::vector<std::string> WithMark(std::vector<std::string> arguments) {
  std::ranges::replace(arguments, std::string("--"), kBetween);
  return arguments;
}

bool SetSides(const std::vector<std::string>& words, GateRequest* request) {
  const auto between = std::ranges::find(words, kBetween);
  request->base.assign(words.begin(), between);
  if (between != words.end()) request->runs.assign(between + 1, words.end());
  const bool has_commands = !request->base_command.empty() && !request->with_command.empty();
  if (request->repeat > 0) {
    if (has_commands && words.empty()) return true;
    Complain("--repeat runs two commands: ranktap diff --repeat 3 --base COMMAND --with COMMAND");
    return false;
  }
  if (!request->base_command.empty() || !request->with_command.empty()) {
    Complain("--base and --with want --repeat N: how often each of them is run");
    return false;
  }
  if (!request->base.empty() && !request->runs.empty() &&
      std::ranges::count(words, kBetween) == 1) {
    return true;
  }
  Complain("diff wants runs before and after --: ranktap diff BASE... -- RUN...");
  return false;
}

bool SetLimits(GateRequest* request) {
  if (request->fail_if.empty()) request->fail_if = {kUsualLimit};
  for (const std::string& text : request->fail_if) {
    const std::optional<GateLimit> limit = ParseGateLimit(text);
    if (!limit) {
      Complain(fmt::format("--fail-if {}: a limit is WHAT>PERCENT%, as '{}'; WHAT is one of {}",
                           text, kUsualLimit, WhatALimitNames()));
      return false;
    }
    request->limits.push_back(*limit);
  }
  return true;
}

// In turn, A B B A, so that a machine that gets slower by the hour does so for both.
int RunInTurn(GateRequest* request) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (int turn = 0; turn < request->repeat; ++turn) {
    for (const bool first : {true, false}) {
      const bool is_base = first == (turn % 2 == 0);
      const std::string& shell_command = is_base ? request->base_command : request->with_command;
      const std::string run =
          fmt::format("{}/{}-{}", request->folder, is_base ? "base" : "with", turn + 1);
      if (std::filesystem::exists(run, error)) {
        return Complained(fmt::format("{} is there already: name another folder with --runs", run),
                          kFailure);
      }
      std::vector<std::string> command = {self, "run", "--require", "-o", run};
      if (!request->level.empty()) command.insert(command.end(), {"--level", request->level});
      command.insert(command.end(), {"--", "/bin/sh", "-c", shell_command});
      const Result<int> status = RunAndWait(command, STDERR_FILENO);
      if (!status) return Complained(status.message(), kFailure);
      if (*status != 0) {
        return Complained(fmt::format("{}: the command ended with status {}", run, *status),
                          kFailure);
      }
      (is_base ? request->base : request->runs).push_back(run);
    }
  }
  return kSuccess;
}

void PrintGate(const GateResult& gate, const GateRequest& request) {
  std::string page;
  if (request.format == "markdown") page = FormatGateMarkdown(gate);
  if (request.format == "junit") page = FormatGateJUnit(gate);
  if (!page.empty()) {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return;
  }
  TableView view;
  view.format = *FormatNamed(request.format);
  Table table = TabulateGate(gate);
  if (view.format == Format::kText) {  // the sentence and the notes say why
    table.columns.pop_back();
    for (std::vector<Cell>& row : table.rows) row.pop_back();
  }
  Print(table, view, 0);
}

int StatusOf(GateAnswer answer) {
  switch (answer) {
    case GateAnswer::kNoRegression:
      return kSuccess;
    case GateAnswer::kRegression:
      return kRegression;
    case GateAnswer::kCannotTell:
      break;
  }
  return kCannotTell;
}

}  // namespace

int DiffCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  GateRequest request;
  std::vector<std::string> words;
  Arguments app(
      "Says whether runs are worse than others by more than a limit. The unit is the run: 3 of\n"
      "each side at least, or a baseline of several. Exit status 0: no regression, 3: regression,\n"
      "4: cannot tell.",
      "ranktap diff");
  app.SetUsage(
      "ranktap diff [OPTIONS] BASE... -- RUN...\n"
      "       ranktap diff [OPTIONS] --repeat N --base COMMAND --with COMMAND");
  app.Add("RUNS", &words, "run directories, other tools' traces, files of ranktap baseline");
  app.Add("--fail-if", &request.fail_if,
          fmt::format("what may grow by how much, as '{}' (default), 'memory-peak>5%', "
                      "'kernels:gemm*>10%'; may be repeated",
                      kUsualLimit))
      .Repeatable();
  app.Add("--format", &request.format, "text, json, markdown, junit or html")
      .OneOf({"text", "json", "markdown", "junit", "html"})
      .ShowsDefault();
  app.Add("-o,--output", &request.output, "a file, instead of standard output");
  constexpr const char* kGroup = "Run two commands in turn";
  app.Add("--repeat", &request.repeat, "how often each command is run")
      .From(1, kMostRepeats)
      .Group(kGroup);
  app.Add("--base", &request.base_command, "a shell's command, as it was before").Group(kGroup);
  app.Add("--with", &request.with_command, "the same with the change").Group(kGroup);
  app.Add("--runs", &request.folder, "the folder for the runs").ShowsDefault().Group(kGroup);
  app.Add("--level", &request.level, "the level of ranktap run").Group(kGroup);
  if (const auto status = app.Parse(WithMark(arguments))) return *status;
  if (!SetSides(words, &request) || !SetLimits(&request)) return kWrongUsage;
  if (request.repeat > 0) {
    if (const int status = RunInTurn(&request); status != kSuccess) return status;
  }
  const auto base = FiguresAt(request.base);
  if (!base) return kFailure;
  const auto runs = FiguresAt(request.runs);
  if (!runs) return kFailure;
  if (base->empty() || runs->empty()) return Complained("a baseline has no runs", kFailure);
  const GateResult gate = Judge(*base, *runs, request.limits);
  const int status = PrintInto(request.output, [&] {
    PrintGate(gate, request);
    return std::fflush(stdout) == 0 ? kSuccess : Complained("could not write the answer", kFailure);
  });
  return status == kSuccess ? StatusOf(gate.answer) : status;
}

}  // namespace ranktap::collector
