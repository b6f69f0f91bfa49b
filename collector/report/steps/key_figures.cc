// The run in one row: what a person asks first.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/report/steps/throughput.h"

namespace ranktap::collector {
namespace {

struct Figures {
  int64_t ranks = 0;
  DurationDistribution steps;  // after the warm-up, of all ranks
  bool on_host = true;
  bool tells_waiting = true;  // from transfer
  bool is_busy_known = true;
  int64_t step_ns = 0, busy_ns = 0, transfer_ns = 0, wait_ns = 0;  // of the mean step, added up
  std::optional<double> mfu, samples_per_second;
  bool had_mfu = false;  // before checks
  Cell peak_bytes, peak_rank, peak_device;
};

void AddSteps(const Run& run, Figures* figures) {
  for (const RankWaterfall& rank : ComputeWaterfalls(run)) {
    for (const Step& step : rank.steps.list) {
      if (!step.warm_up && !rank.steps.source.empty()) figures->steps.Add(step.length());
    }
    const auto of = [&rank](Cause cause) { return rank.mean[static_cast<size_t>(cause)]; };
    figures->on_host &= rank.on_host;
    figures->step_ns += rank.mean_step;
    figures->transfer_ns += of(Cause::kTransfer);
    figures->wait_ns += of(Cause::kWait);
    if (rank.on_host) continue;
    figures->busy_ns +=
        of(Cause::kCompute) + of(Cause::kTransfer) + of(Cause::kWait) + of(Cause::kMemory);
  }
}

void AddThroughput(const Run& run, const ReportOptions& options, Figures* figures) {
  double mfu = 0;
  int ranks = 0;
  for (const Trace& trace : run.traces) {
    const std::optional<Throughput> throughput = MeasureThroughput(run, trace, options);
    if (!throughput) continue;
    if (!figures->samples_per_second) figures->samples_per_second = throughput->SamplesPerSecond();
    if (const std::optional<double> of_rank = throughput->Mfu()) {
      mfu += *of_rank;
      ++ranks;
    }
  }
  figures->had_mfu = ranks > 0;
  if (ranks > 0 && WhyNoUtilisation(run, options).empty()) figures->mfu = mfu / ranks;
}

// A GPU's before the host's: that is the one that runs out.
void AddPeak(const Run& run, Figures* figures) {
  const Table memory = TabulateMemory(run);
  const auto column = [&memory](std::string_view name) {
    const auto found =
        std::find_if(memory.columns.begin(), memory.columns.end(),
                     [name](const TableColumn& column) { return column.name == name; });
    return static_cast<size_t>(found - memory.columns.begin());
  };
  const size_t rank = column("rank"), device = column("device"), peak = column("peak_bytes");
  const auto key = [&](const std::vector<Cell>& row) {
    const auto* const name = std::get_if<std::string>(&row[device]);
    const auto* const bytes = std::get_if<int64_t>(&row[peak]);
    return std::pair(name == nullptr || *name != "CPU", bytes == nullptr ? 0 : *bytes);
  };
  const auto most = std::max_element(memory.rows.begin(), memory.rows.end(),
                                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
  if (most == memory.rows.end() || key(*most).second == 0) return;
  figures->peak_bytes = (*most)[peak];
  figures->peak_rank = (*most)[rank];
  figures->peak_device = (*most)[device];
}

Cell Steps(const Figures& of, int64_t ns) { return of.steps.count == 0 ? Cell() : Cell(ns); }

const ColumnsOf<Figures> kKeyFiguresColumns = {
    {"ranks", Unit::kCount, "The number of ranks in the run.",
     [](const Figures& of) { return of.ranks; }},
    {"steps", Unit::kCount, "The steps of a rank after the warm-up.",
     [](const Figures& of) { return of.steps.count / std::max<int64_t>(of.ranks, 1); }},
    {"step_median_ns", Unit::kNs, "The median step of all ranks, as the devices ran it.",
     [](const Figures& of) { return Steps(of, of.steps.median_ns()); }},
    {"step_p95_ns", Unit::kNs, "The length that 95 % of the steps do not exceed.",
     [](const Figures& of) { return Steps(of, of.steps.p95_ns()); }},
    {"step_max_ns", Unit::kNs, "The longest step.",
     [](const Figures& of) { return Steps(of, of.steps.max_ns); }},
    {"busy_percent", Unit::kPercent,
     "The share of the mean step in which the devices work; empty: undecided.",
     [](const Figures& of) {
       return of.on_host || !of.is_busy_known ? Cell() : Percent(of.busy_ns, of.step_ns);
     }},
    {"exposed_comm_percent", Unit::kPercent,
     "The share of the mean step in collectives while nothing computes, waiting included.",
     [](const Figures& of) { return Percent(of.transfer_ns + of.wait_ns, of.step_ns); }},
    {"exposed_wait_percent", Unit::kPercent,
     "The share of the mean step that ranks wait in collectives for other ranks; empty: undecided.",
     [](const Figures& of) { return of.tells_waiting ? Percent(of.wait_ns, of.step_ns) : Cell(); }},
    {"mfu_percent", Unit::kPercent,
     "The rate of forward and backward operations as a share of the peak (MFU).",
     [](const Figures& of) { return of.mfu ? Cell(100 * *of.mfu) : Cell(); }},
    {"samples_per_second", Unit::kCount,
     "The samples that all ranks together train on in a second.",
     [](const Figures& of) {
       return of.samples_per_second ? Cell(*of.samples_per_second) : Cell();
     }},
    {"peak_bytes", Unit::kBytes, "The most memory that a device held.",
     [](const Figures& of) { return of.peak_bytes; }},
    {"peak_rank", Unit::kCount, "The rank that held the most.",
     [](const Figures& of) { return of.peak_rank; }},
    {"peak_device", Unit::kText, "The device that held the most.",
     [](const Figures& of) { return of.peak_device; }},
};

}  // namespace

Table TabulateKeyFigures(const Run& run, const ReportOptions& options) {
  Figures figures{.ranks = static_cast<int64_t>(run.traces.size())};
  figures.tells_waiting = TellsWaiting(run);
  figures.is_busy_known = !RulingOn(run, Claim::kBusy).is_undecided();
  AddSteps(run, &figures);
  AddThroughput(run, options, &figures);
  AddPeak(run, &figures);
  Table table = TableOf("The run in one row", kKeyFiguresColumns, std::vector<Figures>{figures});
  for (const Claim claim : {Claim::kTransfer, Claim::kBusy}) {
    const Ruling& ruling = RulingOn(run, claim);
    if (!ruling.is_undecided()) continue;
    table.notes.push_back(fmt::format(
        "{} is undecided: {}",
        claim == Claim::kBusy ? "how busy the devices are" : "how much of communication is waiting",
        ruling.why));
  }
  if (std::string why = WhyNoUtilisation(run, options); figures.had_mfu && !why.empty()) {
    table.notes.push_back(std::move(why));
  }
  return table;
}

}  // namespace ranktap::collector
