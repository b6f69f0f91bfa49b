// `ranktap bisect GOOD BAD -- COMMAND`: the commit that made a program slower. Runs are made in a
// worktree of our own, each at the commit that halves what is still believed (change_search.h).
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "collector/cli/command.h"
#include "collector/cli/commits.h"
#include "collector/cli/compared_runs.h"
#include "collector/file/printable.h"
#include "collector/launch/run_and_wait.h"
#include "collector/report/columns.h"
#include "collector/report/gate/change_search.h"
#include "collector/report/gate/gate.h"
#include "collector/report/gate/welch.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/report_file.h"
#include "collector/terminal/table_view.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

constexpr int kUsuallyMostRuns = 40, kMostRunsOfABisection = 1000;
constexpr double kWorthARow = 0.01;  // of belief
constexpr int kStatusOfInterrupt = 128 + SIGINT;

struct BisectRequest {
  std::vector<std::string> words, command, good_runs, bad_runs;
  std::string by = "step", build, folder = "ranktap-bisect", level, format = "text", output;
  int most = kUsuallyMostRuns;
  GateLimit figure;
};

struct CommitRow {
  Commit commit;
  size_t runs = 0;
  double sum = 0;  // ns a step, or bytes, of all runs
  std::string skipped;
  double belief = 0;
};

// The worktree has to go also when a person or a CI gives up.
volatile sig_atomic_t stop_signal = 0;
void NoteStop(int signal_number) { stop_signal = signal_number; }

void CatchStops() {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    action.sa_handler = &NoteStop;
    ::sigaction(signal_number, &action, nullptr);
  }
}

std::string Figure(const GateLimit& figure, double value) {
  return figure.kind ? FormatNs(std::llround(value))
                     : FormatBytes(static_cast<uint64_t>(std::llround(value)));
}

class Bisection {
 public:
  Bisection(BisectRequest request, std::vector<Commit> commits)
      : request_(std::move(request)), search_(commits.size() - 1) {
    for (Commit& commit : commits) rows_.push_back({.commit = std::move(commit), .skipped = {}});
  }

  int Search();
  Table Tabulate() const;
  int status() const { return search_.Now().is_sure() ? kSuccess : kCannotTell; }

 private:
  int AddKnown(size_t position, const std::vector<std::string>& paths);
  int MeasureAt(size_t position);
  std::string Run(size_t position, std::string* run);
  bool Take(size_t position, const RunFigures& run, std::string* why);
  std::string Sentence(const ChangeSearch::Belief& belief) const;
  size_t last() const { return rows_.size() - 1; }

  BisectRequest request_;
  std::vector<CommitRow> rows_;  // of all commits
  ChangeSearch search_;
  Worktree worktree_;
  std::vector<RunFigures> first_;  // one run, that the others are to be like
  int runs_ = 0;
};

bool Bisection::Take(size_t position, const RunFigures& run, std::string* why) {
  const Result<double> value = FigureOf(run, request_.figure);
  *why = value ? "" : value.message();
  if (why->empty() && !first_.empty()) *why = WhyNotComparable(first_, {run});
  if (!why->empty()) return false;
  if (first_.empty()) first_ = {run};
  search_.Add(position, *value);
  rows_[position].runs += 1;
  rows_[position].sum += *value;
  return true;
}

int Bisection::AddKnown(size_t position, const std::vector<std::string>& paths) {
  const auto figures = FiguresAt(paths);
  if (!figures) return kFailure;
  for (const RunFigures& run : *figures) {
    std::string why;
    if (!Take(position, run, &why)) return Complained(why, kFailure);
  }
  return kSuccess;
}

// Why there is no run; empty: it is at *run.
std::string Bisection::Run(size_t position, std::string* run) {
  const Commit& commit = rows_[position].commit;
  if (std::string problem = worktree_.CheckOut(commit.hash); !problem.empty()) return problem;
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error).string();
  *run = fmt::format("{}/{}-{}", fs::absolute(request_.folder, error).string(), runs_,
                     commit.short_hash());
  const auto in_place = [this](std::vector<std::string> command) {
    const std::vector<std::string> there = {"/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\"",
                                            "sh", worktree_.place()};
    command.insert(command.begin(), there.begin(), there.end());
    return RunAndWait(command, STDERR_FILENO);
  };
  const auto problem_of = [](std::string_view what, const Result<int>& status) -> std::string {
    if (!status) return status.message();
    if (*status == kStatusOfInterrupt) stop_signal = SIGINT;
    return *status == 0 ? "" : fmt::format("the {} ended with status {}", what, *status);
  };
  if (!request_.build.empty()) {
    const Result<int> status = in_place({"/bin/sh", "-c", request_.build});
    if (std::string problem = problem_of("build", status); !problem.empty()) return problem;
  }
  std::vector<std::string> command = {self, "run", "--require", "--quiet", "-o", *run};
  if (!request_.level.empty()) command.insert(command.end(), {"--level", request_.level});
  command.push_back("--");
  command.insert(command.end(), request_.command.begin(), request_.command.end());
  return problem_of("command", in_place(command));
}

int Bisection::MeasureAt(size_t position) {
  CommitRow& row = rows_[position];
  const std::string name =
      fmt::format("{} ({})", row.commit.short_hash(), Printable(row.commit.subject));
  std::string run;
  ++runs_;
  std::string why = Run(position, &run);
  if (stop_signal != 0) return Complained("interrupted; the worktree is removed", kFailure);
  if (why.empty()) {
    const auto figures = FiguresAt({run});
    if (!figures) return kFailure;
    Take(position, figures->front(), &why);
  }
  if (!why.empty()) {
    const bool is_end = position == 0 || position == last();
    if (is_end && row.runs == 0) return Complained(fmt::format("{}: {}", name, why), kFailure);
    if (row.runs > 0) {  // it ran before: the next try may do
      Complain(fmt::format("run {}: {}: {}", runs_, name, why));
      return kSuccess;
    }
    row.skipped = why;
    search_.Skip(position);
    Complain(fmt::format("run {}: {} is skipped: {}", runs_, name, why));
    return kSuccess;
  }
  const ChangeSearch::Belief belief = search_.Now();
  const double value = row.sum / static_cast<double>(row.runs);
  Complain(fmt::format(
      "run {}: {}: {} {}{}", runs_, name, request_.by, Figure(request_.figure, value),
      belief.probability == 0 ? ""
                              : fmt::format("; {:.0f} % sure of {}", 100 * belief.probability,
                                            rows_[belief.last].commit.short_hash())));
  return kSuccess;
}

int Bisection::Search() {
  std::error_code error;
  if (fs::exists(request_.folder, error) && !fs::is_empty(request_.folder, error)) {
    return Complained(
        fmt::format("{} is there already: name another folder with --runs", request_.folder),
        kFailure);
  }
  for (const auto& [position, paths] :
       {std::pair(size_t{0}, request_.good_runs), std::pair(last(), request_.bad_runs)}) {
    if (const int status = AddKnown(position, paths); status != kSuccess) return status;
  }
  while (runs_ < request_.most) {
    const ChangeSearch::Belief belief = search_.Now();
    if (belief.is_sure() || !belief.measure) break;
    if (const int status = MeasureAt(*belief.measure); status != kSuccess) return status;
  }
  const ChangeSearch::Belief belief = search_.Now();
  if (belief.probability > 0) {
    for (size_t i = belief.first; i <= belief.last; ++i) rows_[i].belief = belief.probability;
  }
  return kSuccess;
}

std::string Bisection::Sentence(const ChangeSearch::Belief& belief) const {
  if (belief.probability == 0) return "Cannot tell: the ends are not measured";
  const CommitRow& row = rows_[belief.last];
  const auto seen = CompareMeans(search_.Before(belief.last), search_.From(belief.last));
  std::string text =
      belief.first == belief.last
          ? fmt::format("{} ({})", row.commit.short_hash(), Printable(row.commit.subject))
          : fmt::format("one of {}, of which only {} ran, {} to {},",
                        Counted(belief.last - belief.first + 1, "commit"), row.commit.short_hash(),
                        rows_[belief.first].commit.short_hash(), row.commit.short_hash());
  text = belief.is_sure()
             ? fmt::format("The change came with {}: {:.0f} % sure", text, 100 * belief.probability)
             : fmt::format("Cannot tell: most likely the change came with {}, {:.0f} % sure", text,
                           100 * belief.probability);
  if (!seen) return text;
  const auto percent = [](double logarithm) { return 100 * std::expm1(logarithm); };
  return fmt::format("{}; {} {:+.1f} %, between {:+.1f} % and {:+.1f} %", text, request_.by,
                     percent(seen->difference), percent(seen->Low(kGateConfidence)),
                     percent(seen->High(kGateConfidence)));
}

const ColumnsOf<std::pair<const CommitRow*, bool>> kCommitColumns = {
    {"commit", Unit::kText, "The commit.",
     [](const auto& row) { return row.first->commit.short_hash(); }},
    {"runs", Unit::kCount, "Its runs that were measured.",
     [](const auto& row) { return static_cast<int64_t>(row.first->runs); }},
    {"mean_ns", Unit::kNs, "The time a step, the mean of its runs.",
     [](const auto& row) {
       return row.first->runs > 0 && row.second
                  ? Cell(std::llround(row.first->sum / static_cast<double>(row.first->runs)))
                  : Cell();
     }},
    {"mean_bytes", Unit::kBytes, "The peak, the mean of its runs.",
     [](const auto& row) {
       return row.first->runs > 0 && !row.second
                  ? Cell(std::llround(row.first->sum / static_cast<double>(row.first->runs)))
                  : Cell();
     }},
    {"sure_percent", Unit::kPercent, "How sure it is that the change came with it.",
     [](const auto& row) {
       return row.first->belief > 0 ? Cell(100 * row.first->belief) : Cell();
     }},
    {"subject", Unit::kText, "The first line of its message.",
     [](const auto& row) { return row.first->commit.subject; }},
    {"skipped", Unit::kText, "Why it was not measured.",
     [](const auto& row) { return row.first->skipped; }, Shown::kProse},
};

Table Bisection::Tabulate() const {
  const ChangeSearch::Belief belief = search_.Now();
  std::vector<std::pair<const CommitRow*, bool>> shown;
  size_t measured = 0, skipped = 0;
  for (const CommitRow& row : rows_) {
    measured += row.runs > 0 ? 1 : 0;
    skipped += row.skipped.empty() ? 0 : 1;
    if (row.runs > 0 || !row.skipped.empty() || row.belief >= kWorthARow) {
      shown.emplace_back(&row, request_.figure.kind.has_value());
    }
  }
  Table table = TableOf(Sentence(belief), kCommitColumns, shown);
  table.name = "bisect";
  std::string note = fmt::format("{} at {} of {}, {} skipped", Counted(runs_, "run"),
                                 Counted(measured, "commit"), last(), skipped);
  if (belief.probability > 0) {
    const auto seen = CompareMeans(search_.Before(belief.last), search_.From(belief.last));
    if (seen) {
      note += fmt::format("; a spread of {} from run to run",
                          FormatPercent(100 * std::expm1(seen->spread)));
    }
  }
  table.notes.push_back(note);
  return table;
}

}  // namespace

int BisectCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  BisectRequest request;
  Arguments app(
      "Finds the commit that made a program slower: runs COMMAND in a git worktree of its own, at\n"
      "one commit after another, until it is 95 % sure of one. A commit whose command fails is\n"
      "skipped. Exit status 0: found, 4: cannot tell.",
      "ranktap bisect");
  app.SetUsage("ranktap bisect [OPTIONS] GOOD BAD -- COMMAND [ARGUMENTS]");
  app.Add("COMMITS", &request.words, "a commit before the change, and one after it");
  app.Add("--by", &request.by, fmt::format("what became larger: {}", WhatALimitNames()))
      .ShowsDefault();
  app.Add("--good-runs", &request.good_runs,
          "runs or a baseline of GOOD that are there; may be repeated")
      .Repeatable();
  app.Add("--bad-runs", &request.bad_runs, "the same of BAD").Repeatable();
  app.Add("--build", &request.build, "a shell's command before each run, untraced");
  app.Add("--most", &request.most, "no more runs than this")
      .From(1, kMostRunsOfABisection)
      .ShowsDefault();
  app.Add("--level", &request.level, "the level of ranktap run");
  app.Add("--runs", &request.folder, "the folder for the runs").ShowsDefault();
  app.Add("--format", &request.format, "text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowsDefault();
  app.Add("-o,--output", &request.output, "a file, instead of standard output");
  const auto between = std::ranges::find(arguments, "--");
  if (const auto status = app.Parse({arguments.begin(), between})) return *status;
  if (between != arguments.end()) request.command.assign(between + 1, arguments.end());
  if (request.words.size() != 2 || request.command.empty()) {
    return Complained("bisect wants two commits and a command: ranktap bisect GOOD BAD -- COMMAND",
                      kWrongUsage);
  }
  const std::optional<GateLimit> figure = ParseGateLimit(request.by + ">0%");
  if (!figure) {
    return Complained(fmt::format("--by {}: it is one of {}", request.by, WhatALimitNames()),
                      kWrongUsage);
  }
  request.figure = *figure;
  Result<std::vector<Commit>> commits = CommitsBetween(request.words[0], request.words[1]);
  if (!commits) return Complained(commits.message(), kFailure);
  if (HasUncommittedChanges()) {
    Complain("this checkout has uncommitted changes, and no run will have them");
  }
  CatchStops();
  const std::string format = request.format, output = request.output;
  Bisection bisection(std::move(request), std::move(*commits));
  if (const int status = bisection.Search(); status != kSuccess) return status;
  const int status = PrintInto(output, [&] {
    TableView view;
    view.format = *FormatNamed(format);
    Print(bisection.Tabulate(), view, 0);
    return std::fflush(stdout) == 0 ? kSuccess : Complained("could not write the answer", kFailure);
  });
  return status == kSuccess ? bisection.status() : status;
}

}  // namespace ranktap::collector
