// `ranktap whatif RUN`: the step that a run would have with changes, before anybody makes them.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "collector/cli/command.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/replay/predict.h"
#include "collector/file/json.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/report/human_units.h"
#include "collector/report/text/name_cut.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using ChangeKind = Change::Kind;

struct WantedEdits {
  std::vector<std::string> paths;
  std::vector<std::string> kernels, modules, lines, ranks;
  std::string host, comm, dataloader, format = "text";
  bool no_dataloader = false;
  int workers = 0;
};

// "x0.5" -> 0.5
std::optional<double> FactorOf(std::string_view word) {
  if (!word.starts_with('x')) return std::nullopt;
  double factor = 0;
  const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), factor);
  constexpr double kMost = 1000;
  const bool is_one = error == std::errc() && end == word.data() + word.size();
  return is_one && factor >= 0 && factor <= kMost ? std::optional(factor) : std::nullopt;
}

// "--module NAME x0.5" and "--rank 3 as median" are options of one word for the parser.
std::vector<std::string> Joined(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < words.size(); ++i) {
    joined.push_back(words[i]);
    const bool takes_factor =
        words[i] == "--kernel" || words[i] == "--module" || words[i] == "--line";
    if (!takes_factor && words[i] != "--rank") continue;
    if (i + 1 >= words.size()) continue;
    joined.push_back(words[++i]);
    if (takes_factor && i + 1 < words.size() && FactorOf(words[i + 1])) {
      joined.back() += " " + words[++i];
    }
    const bool is_median = !takes_factor && i + 2 < words.size() && words[i + 1] == "as";
    if (is_median) joined.back() += " as " + words[i + 2];
    if (is_median) i += 2;
  }
  return joined;
}

constexpr const char* kNoFactor = "say how much of its time is left, as x0.5 or x0";

// False, after a complaint: a word is none.
bool AddNamed(ChangeKind kind, const char* option, const std::vector<std::string>& words,
              std::vector<Change>* changes) {
  for (const std::string& word : words) {
    const size_t space = word.rfind(' ');
    const std::optional<double> factor =
        space == word.npos ? std::nullopt : FactorOf(std::string_view(word).substr(space + 1));
    if (!factor) {
      Complain(fmt::format("{} {}: {}", option, Printable(word), kNoFactor));
      return false;
    }
    changes->push_back({kind, word.substr(0, space), *factor});
  }
  return true;
}
bool AddFactor(ChangeKind kind, const char* option, const std::string& word,
               std::vector<Change>* changes) {
  if (word.empty()) return true;
  const std::optional<double> factor = FactorOf(word);
  if (factor) changes->push_back({kind, "", *factor});
  if (!factor) Complain(fmt::format("{} {}: {}", option, Printable(word), kNoFactor));
  return factor.has_value();
}

std::optional<std::vector<Change>> ChangesIn(const WantedEdits& wanted) {
  std::vector<Change> changes;
  if (wanted.no_dataloader) changes.push_back({ChangeKind::kData, "", 0});
  if (wanted.workers > 0) {
    changes.push_back({ChangeKind::kWorkers, "", static_cast<double>(wanted.workers)});
  }
  const bool good = AddNamed(ChangeKind::kKernel, "--kernel", wanted.kernels, &changes) &&
                    AddNamed(ChangeKind::kModule, "--module", wanted.modules, &changes) &&
                    AddNamed(ChangeKind::kLine, "--line", wanted.lines, &changes) &&
                    AddFactor(ChangeKind::kHost, "--host", wanted.host, &changes) &&
                    AddFactor(ChangeKind::kData, "--dataloader", wanted.dataloader, &changes) &&
                    AddFactor(ChangeKind::kComm, "--comm", wanted.comm, &changes);
  if (!good) return std::nullopt;
  for (const std::string& word : wanted.ranks) {
    const size_t as = word.find(" as median");
    if (as == word.npos) {
      Complain(fmt::format("--rank {}: say '--rank {} as median'", Printable(word),
                           Printable(word.substr(0, word.find(' ')))));
      return std::nullopt;
    }
    changes.push_back({ChangeKind::kRank, word.substr(0, as), 0});
  }
  return changes;
}

std::optional<int> Parse(const std::vector<std::string>& arguments, WantedEdits* wanted) {
  Arguments app(
      "Predicts the step that a run would have with changes that nobody has made yet. It replays\n"
      "what waited for what, and says how well the replay fits the trace. Without a change: all\n"
      "that the run suggests, the largest gain first.",
      "ranktap whatif");
  app.Add("RUN", &wanted->paths, "a run directory, a trace, or files of other tools").Required();
  app.Add("--kernel", &wanted->kernels, "device work by a shell's pattern: --kernel 'gemm*' x0.5")
      .Says("PATTERN")
      .Repeatable();
  app.Add("--module", &wanted->modules,
          "a module and all below it, in both passes: --module blocks.2 x0.5")
      .Says("NAME")
      .Repeatable();
  app.Add("--line", &wanted->lines,
          "a line of the program and what it calls, by samples: --line train.py:93 x0")
      .Says("FILE:LINE")
      .Repeatable();
  app.Add("--rank", &wanted->ranks,
          "this rank does each thing as the median of the others: --rank 3 as median")
      .Says("N")
      .Repeatable();
  app.Add("--host", &wanted->host, "what the threads of steps run on hosts").Says("xF");
  app.Add("--comm", &wanted->comm, "moving data between ranks; waiting for ranks stays").Says("xF");
  app.Add("--dataloader", &wanted->dataloader, "making a batch").Says("xF");
  app.Add("--workers", &wanted->workers, "so many workers of a DataLoader that is late")
      .From(1, kMostWorkers)
      .Says("N");
  app.AddFlag("--no-dataloader", &wanted->no_dataloader, "the same as --dataloader x0");
  app.Add("--format", &wanted->format, "format of the answer")
      .OneOf({"text", "json"})
      .ShowsDefault();
  return app.Parse(Joined(arguments));
}

std::string Names(const std::vector<Change>& changes) {
  std::vector<std::string> names;
  for (const Change& change : changes) names.push_back(Describe(change));
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string GainOf(const Prediction& prediction) {
  return fmt::format("{:+.1f} %", -prediction.gain_percent());
}

std::string RankOf(const Run& run, const CriticalPart& part) {
  const auto& rank = run.traces[part.trace].info.rank;
  return run.traces.size() < 2 || !rank ? "" : fmt::format(" of rank {}", *rank);
}

// Kernels' names side by side, so that what differs is left of them.
std::vector<std::string> CutToTell(const std::vector<std::string>& names) {
  constexpr size_t kColumns = 60;
  return CutNames(names, kColumns);
}

std::string CriticalText(const Run& run, const Prediction& prediction) {
  constexpr size_t kMost = 3;
  std::vector<std::string> names;
  for (const CriticalPart& part : prediction.critical) {
    if (names.size() == kMost || part.ns * 100 < prediction.step) break;
    names.push_back(part.what);
  }
  names = CutToTell(names);
  std::vector<std::string> parts;
  for (size_t i = 0; i < names.size(); ++i) {
    const CriticalPart& part = prediction.critical[i];
    parts.push_back(fmt::format("{}{} {}", names[i], RankOf(run, part), FormatNs(part.ns)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// As Describe, with kernels' names short enough for a line.
std::vector<std::string> DescribeAll(const std::vector<Candidate>& all) {
  std::vector<std::string> kernels;
  for (const auto& [change, prediction] : all) {
    if (change.kind == ChangeKind::kKernel) kernels.push_back(TellingKernelName(change.what));
  }
  kernels = CutToTell(kernels);
  std::vector<std::string> names;
  auto kernel = kernels.begin();
  for (const auto& [change, prediction] : all) {
    Change told = change;
    if (change.kind == ChangeKind::kKernel) told.what = *kernel++;
    names.push_back(Describe(told));
  }
  return names;
}

// Where the steps of the table of steps are others: those before the first and after the last.
std::string StepText(const Run& run, const Identity& identity, int64_t before) {
  if (identity.disturbed > 0) return "";  // IdentityText says that steps are left out
  std::vector<double> lengths;
  for (const Trace& trace : run.traces) {
    for (const Step& step : StepsOnDevice(trace).list) {
      if (!step.warm_up) lengths.push_back(static_cast<double>(step.length()));
    }
  }
  const auto told = static_cast<int64_t>(lengths.empty() ? 0 : Median(std::move(lengths)));
  constexpr int64_t kTellAbove = 100;  // 1 %
  if (std::abs(told - before) * kTellAbove <= before) return "";
  return fmt::format(
      "  note: a step ends here with the last work that it launched; the table of steps has a "
      "median of {}\n",
      FormatNs(told));
}

std::string IdentityText(const Identity& identity) {
  std::string text = fmt::format(
      "replayed as it was, a step is {:.2f} % off at the median and {:.2f} % at p95, a start {} at "
      "p95; {} of {} edges contradict the trace; ",
      identity.median_percent, identity.p95_percent, FormatNs(identity.start_p95_ns),
      FormatCount(static_cast<int64_t>(identity.violated)),
      FormatCount(static_cast<int64_t>(identity.edges)));
  if (identity.disturbed > 0) {
    text = fmt::format("left out: {} in which something else had a rank's CPU\n  note: {}",
                       Counted(identity.disturbed, "step"), text);
  }
  text += identity.has_device ? fmt::format("{:.1f} % of the devices' idle time is kept as it was",
                                            identity.kept_gap_percent)
                              : "no device stood idle";
  return text;
}

Json JsonOf(const Run& run, const std::string& name, const Prediction& prediction) {
  Json critical = Json::array();
  for (const CriticalPart& part : prediction.critical) {
    Json row = {{"what", part.what}, {"ns", part.ns}};
    if (run.traces[part.trace].info.rank) row["rank"] = *run.traces[part.trace].info.rank;
    critical.push_back(std::move(row));
  }
  return {{"change", name},
          {"step_ns", prediction.step},
          {"low_ns", prediction.low},
          {"high_ns", prediction.high},
          {"gain_percent", prediction.gain_percent()},
          {"critical", std::move(critical)}};
}

void PrintJson(const Run& run, const Identity& identity, int64_t before,
               const std::vector<Json>& answers) {
  const Json all = {{"run", run.path},
                    {"steps", identity.steps},
                    {"disturbed_steps", identity.disturbed},
                    {"step_ns", before},
                    {"identity",
                     {{"median_percent", identity.median_percent},
                      {"p95_percent", identity.p95_percent},
                      {"start_p95_ns", identity.start_p95_ns},
                      {"edges", identity.edges},
                      {"violated", identity.violated},
                      {"kept_gap_percent", identity.kept_gap_percent}}},
                    {"answers", answers}};
  fmt::print("{}\n", WriteJson(all, 1, JsonOrder::kByName));
}

std::string TooWide(const Prediction& prediction) {
  return fmt::format(
      "the prediction would be {} with bounds of {:.0f} % on each side, and more than {:g} % is no "
      "answer: record more steps, or change less at once",
      FormatNs(prediction.step), prediction.doubt_percent(), kWidestPercent);
}

int Answer(const Run& run, const Identity& identity, const std::vector<Change>& changes,
           const WantedEdits& wanted) {
  const Result<Prediction> prediction = Predict(run, changes);
  if (!prediction) return Complained(prediction.message(), kFailure);
  if (prediction->doubt_percent() > kWidestPercent) {
    return Complained(TooWide(*prediction), kFailure);
  }
  if (wanted.format == "json") {
    PrintJson(run, identity, prediction->before, {JsonOf(run, Names(changes), *prediction)});
    return kSuccess;
  }
  fmt::print("With {} a step takes {} ({}), between {} and {}; now {}.\n",
             Printable(Names(changes)), FormatNs(prediction->step), GainOf(*prediction),
             FormatNs(prediction->low), FormatNs(prediction->high), FormatNs(prediction->before));
  fmt::print("  then critical: {}\n{}", Printable(CriticalText(run, *prediction)),
             StepText(run, identity, prediction->before));
  fmt::print("  note: {}\n", IdentityText(identity));
  return kSuccess;
}

int AnswerAll(const Run& run, const Identity& identity, const WantedEdits& wanted) {
  const std::vector<Candidate> all = PredictAll(run);
  const std::vector<std::string> names = DescribeAll(all);
  std::vector<Json> answers;
  std::vector<std::string> lines, too_wide;
  int64_t before = 0;
  size_t without_gain = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [change, prediction] = all[i];
    before = prediction.before;
    if (prediction.doubt_percent() > kWidestPercent) {
      too_wide.push_back(names[i]);
      continue;
    }
    if (wanted.format == "json") answers.push_back(JsonOf(run, Describe(change), prediction));
    if (prediction.gain_percent() < 1) {
      ++without_gain;
      continue;
    }
    lines.push_back(fmt::format("  with {} {} ({}), between {} and {}", Printable(names[i]),
                                FormatNs(prediction.step), GainOf(prediction),
                                FormatNs(prediction.low), FormatNs(prediction.high)));
  }
  if (wanted.format == "json") {
    PrintJson(run, identity, before, answers);
    return kSuccess;
  }
  fmt::print("A step takes {} ({}).\n", FormatNs(before), Counted(identity.steps, "step"));
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (without_gain > 0) {
    fmt::print("  note: {} would gain less than 1 %\n", Counted(without_gain, "other change"));
  }
  if (!too_wide.empty()) {
    fmt::print("  note: too few or too uneven steps for a bound of {:g} % with {}\n",
               kWidestPercent, Printable(fmt::format("{}", fmt::join(too_wide, ", "))));
  }
  fmt::print("{}", StepText(run, identity, before));
  fmt::print("  note: {}\n", IdentityText(identity));
  return kSuccess;
}

}  // namespace

int WhatIfCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  WantedEdits wanted;
  if (const auto status = Parse(arguments, &wanted)) return *status;
  const std::optional<std::vector<Change>> changes = ChangesIn(wanted);
  if (!changes) return kWrongUsage;
  const Result<Run> run = OpenRun(wanted.paths);
  if (!run) return Complained(run.message(), kFailure);
  if (!run->problems.empty()) {
    return Complained(fmt::format("nothing is predicted: {}", Printable(run->problems.front())),
                      kFailure);
  }
  const Result<Identity> identity = CheckIdentity(*run);
  if (!identity) return Complained(identity.message(), kFailure);
  if (!identity->broken.empty()) {
    return Complained(fmt::format("nothing is predicted: {}", identity->broken), kFailure);
  }
  return changes->empty() ? AnswerAll(*run, *identity, wanted)
                          : Answer(*run, *identity, *changes, wanted);
}

}  // namespace ranktap::collector
