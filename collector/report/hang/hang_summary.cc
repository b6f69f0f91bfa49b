#include "collector/report/hang/hang_summary.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/framework/program_lines.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/hang/hang_words.h"
#include "collector/report/human_units.h"
#include "collector/trace/group_calls.h"

namespace ranktap::collector {
namespace {

struct Line {
  const JobCalls* job = nullptr;
  const HangFinding* finding = nullptr;
};

std::string_view LastLineOf(const HangFinding& finding) {
  if (finding.other_call) return ProgramLineOf(finding.other_call->stack);
  if (finding.last_call) return ProgramLineOf(finding.last_call->stack);
  return "";
}

Cell TextOrNone(std::string_view text) { return text.empty() ? Cell() : Cell(std::string(text)); }

const ColumnsOf<Line> kColumns = {
    {"cause", Unit::kText, "The rule that found it.",
     [](const Line& line) { return std::string(NameOf(line.finding->cause)); }},
    {"ranks", Unit::kText, "The ranks that it names.",
     [](const Line& line) { return RankNames(line.finding->ranks); }},
    {"guilty", Unit::kText, "Whether these ranks are the cause, or only take part.",
     [](const Line& line) { return std::string(line.finding->is_guilty ? "yes" : "undecided"); },
     Shown::kDetail},
    {"call", Unit::kText, "The call in which the others wait, with its number in the group.",
     [](const Line& line) { return CallName(*line.job, line.finding->call); }, Shown::kDetail},
    {"waiting", Unit::kCount, "The number of ranks that wait in this call.",
     [](const Line& line) { return static_cast<int64_t>(line.finding->waiting.size()); }},
    {"line", Unit::kText, "The program's line at which the first of these ranks last called.",
     [](const Line& line) { return TextOrNone(LastLineOf(*line.finding)); }, Shown::kDetail},
    {"finding", Unit::kText, "What the calls of all ranks say.",
     [](const Line& line) { return DescribeHang(*line.job, *line.finding); }, Shown::kProse},
    {"advice", Unit::kText, "What to try.",
     [](const Line& line) { return HangAdvice(*line.finding); }, Shown::kProse},
};

struct RankLine {
  const JobCalls* job = nullptr;
  uint32_t rank = 0;
  size_t calls = 0;
  const JobCall* last = nullptr;
  int64_t first_ns = 0;  // of all ranks' last calls
};

const ColumnsOf<RankLine> kRankColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const RankLine& line) { return int64_t{line.rank}; }},
    {"calls", Unit::kCount, "The number of calls in the rank's file.",
     [](const RankLine& line) { return static_cast<int64_t>(line.calls); }},
    {"last_call", Unit::kText, "The call that the rank entered last.",
     [](const RankLine& line) {
       return line.last == nullptr ? Cell() : Cell(CallName(*line.job, *line.last));
     }},
    {"open", Unit::kText, "Whether that call had not ended.",
     [](const RankLine& line) {
       return line.last == nullptr ? Cell() : Cell(std::string(line.last->is_open ? "yes" : "no"));
     }},
    {"entered_ns", Unit::kNs,
     "When the rank entered it, counted from the first rank that entered its last.",
     [](const RankLine& line) {
       return line.last == nullptr ? Cell() : Cell(line.last->entered_ns - line.first_ns);
     }},
    {"line", Unit::kText, "The program's line that called it.",
     [](const RankLine& line) {
       return line.last == nullptr ? Cell() : TextOrNone(ProgramLineOf(line.last->stack));
     }},
};

bool AnyStacks(const JobCalls& job) {
  return std::ranges::any_of(job.ranks, [](const auto& rank) {
    return std::ranges::any_of(rank.second,
                               [](const JobCall& call) { return !call.stack.empty(); });
  });
}

void AddNotes(const Run& run, const JobCalls& job, Table* table) {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < job.world; ++rank) {
    if (!job.Knows(rank)) missing.push_back(rank);
  }
  if (!missing.empty()) {
    table->notes.push_back(fmt::format("no complete record of {}: what {} did is not known",
                                       RankNames(missing), missing.size() == 1 ? "it" : "they"));
  }
  for (const Trace& trace : run.traces) {
    if (!GroupCallsOf(trace).is_dump) continue;
    if (!trace.info.rank) {
      table->notes.push_back(
          fmt::format("{}: its name does not end with a rank; left out", trace.info.file));
    }
    for (const Damage& damage : trace.damage) {
      table->notes.push_back(
          fmt::format("{}: offset {}: {}", trace.path, damage.offset, damage.what));
    }
  }
  const auto is_gloo = [](const JobGroup& group) { return group.backend == "gloo"; };
  if (std::ranges::any_of(job.groups, is_gloo)) {
    table->notes.push_back(
        "gloo's sends and recvs are not known: a rank that stands in one seems to be in no call");
  }
  const auto is_dump = [](const Trace& trace) { return GroupCallsOf(trace).is_dump; };
  if (std::ranges::any_of(run.traces, is_dump) && !AnyStacks(job)) {
    table->notes.push_back("the files have no stacks, as JSON never has: no line is known");
  }
}

Table WithoutCalls() {
  return {.title = "No file tells which calls the ranks entered",
          .notes = {"hang reads the dumps of PyTorch's Flight Recorder (ranktap report "
                    "nccl_trace_rank_* hang), and gloo's collectives of a run at --level full"}};
}

}  // namespace

Table TabulateHang(const Run& run, const ReportOptions&) {
  const JobCalls& job = CallsOfJob(run);
  const std::vector<HangFinding> findings = FindHang(job);
  std::vector<Line> lines;
  for (const HangFinding& finding : findings) lines.push_back({&job, &finding});
  Table table = TableOf("", kColumns, lines);
  table.title = findings.empty()
                    ? "No call is open, and none differs: no rank waits in a process group"
                    : DescribeHang(job, findings.front());
  if (job.ranks.empty()) {
    Table none = WithoutCalls();
    none.columns = std::move(table.columns);
    table = std::move(none);
  }
  AddNotes(run, job, &table);
  return table;
}

Table TabulateHangByRank(const Run& run, const ReportOptions&) {
  const JobCalls& job = CallsOfJob(run);
  std::vector<RankLine> lines;
  for (const auto& [rank, calls] : job.ranks) {
    lines.push_back({&job, rank, calls.size(), calls.empty() ? nullptr : &calls.back()});
  }
  int64_t first_ns = INT64_MAX;
  for (const RankLine& line : lines) {
    if (line.last != nullptr) first_ns = std::min(first_ns, line.last->entered_ns);
  }
  for (RankLine& line : lines) line.first_ns = first_ns;
  Table table = TableOf("The call that each rank entered last", kRankColumns, lines);
  AddNotes(run, job, &table);
  return table;
}

}  // namespace ranktap::collector
