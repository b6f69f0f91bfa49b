#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

#include "collector/facts/flops/op_flops.h"
#include "collector/file/json.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "collector/trace/sort_rows.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kMark = proto::kFlopCheckMark;
constexpr proto::RowFields kCount = proto::kFlopCheckRow;

struct Counts {
  int64_t calls = 0, flops = 0;
};
struct Pair {
  Counts ours, theirs;
  int64_t difference() const { return ours.flops - theirs.flops; }
};
using Operation = std::pair<std::string, std::string>;  // operator, shapes

// "[[2, 3], [], []]" -> "[[2, 3]]": inputs that are not tensors come last, or the operator tells
// them apart.
std::string WithoutEmptyEnds(std::string_view shapes) {
  std::string text(shapes);
  while (text.ends_with(", []]")) text.replace(text.size() - 5, 5, "]");
  return text == "[[]]" ? "[]" : text;
}

struct Check {
  int64_t start = kUntimed, end = kUntimed;
  std::map<Operation, Pair> pairs;
};

void ReadTheirs(const Trace& trace, Check* check) {
  const Ranges& marks = trace.marks;
  for (uint32_t row = 0; row < marks.size(); ++row) {
    if (trace.dictionary.Domain(marks.domain[row]) != kOperatorDomain ||
        trace.dictionary.String(marks.name[row]) != kMark) {
      continue;
    }
    if (check->start == kUntimed) {
      check->start = marks.start[row];
    } else {
      check->end = marks.start[row];
    }
  }
  for (const std::string_view line : MarkedLines(trace, kOperatorDomain, kMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() != kCount.size() || !row[kCount["operator"]].is_string() ||
        !row[kCount["shapes"]].is_string() || !row[kCount["calls"]].is_number_integer() ||
        !row[kCount["flops"]].is_number_integer()) {
      continue;
    }
    Counts& theirs = check
                         ->pairs[{row[kCount["operator"]].get<std::string>(),
                                  row[kCount["shapes"]].get<std::string>()}]
                         .theirs;
    AddCapped(std::max<int64_t>(row[kCount["calls"]].get<int64_t>(), 0), &theirs.calls);
    AddCapped(std::max<int64_t>(row[kCount["flops"]].get<int64_t>(), 0), &theirs.flops);
  }
}

void CountOurs(const Trace& trace, Check* check) {
  const Operators& ops = trace.operators;
  const std::vector<FlopCount> counts = CountFlops(trace, FlopRule::kCounter);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].flops == 0 || ops.start[i] < check->start || ops.start[i] > check->end) continue;
    Counts& ours = check
                       ->pairs[{std::string(trace.dictionary.String(ops.name[i])),
                                WithoutEmptyEnds(trace.dictionary.String(ops.shapes.At(i)))}]
                       .ours;
    ++ours.calls;
    AddCapped(counts[i].flops, &ours.flops);
  }
}

std::string Verdict(const Pair& pair) {
  if (pair.theirs.flops == 0) return "only ours";
  if (pair.ours.flops == 0) return "only FlopCounterMode's";
  return pair.difference() == 0 ? "agree" : "differ";
}

struct FlopCheckLine {
  const Trace* trace = nullptr;
  Operation operation;
  Pair pair;
};

const ColumnsOf<FlopCheckLine> kFlopCheckColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const FlopCheckLine& line) { return RankCell(*line.trace); }, Shown::kDetail},
    {"operator", Unit::kText, "The operator; PyTorch's FlopCounterMode has a formula for it.",
     [](const FlopCheckLine& line) { return line.operation.first; }, Shown::kProse},
    {"input_shapes", Unit::kText, "The shapes that the operator took.",
     [](const FlopCheckLine& line) { return line.operation.second; }, Shown::kProse},
    {"calls", Unit::kCount, "The calls that ranktap saw.",
     [](const FlopCheckLine& line) { return line.pair.ours.calls; }},
    {"counter_calls", Unit::kCount, "The calls that PyTorch's counter saw.",
     [](const FlopCheckLine& line) { return line.pair.theirs.calls; }, Shown::kDetail},
    {"flops", Unit::kFlops, "The operations by ranktap's count.",
     [](const FlopCheckLine& line) { return line.pair.ours.flops; }},
    {"counter_flops", Unit::kFlops, "The operations by PyTorch's counter.",
     [](const FlopCheckLine& line) { return line.pair.theirs.flops; }},
    {"difference", Unit::kFlops, "ranktap's count less PyTorch's.",
     [](const FlopCheckLine& line) { return line.pair.difference(); }, Shown::kDetail},
    {"verdict", Unit::kText, "same, or which of the two differs.",
     [](const FlopCheckLine& line) { return Verdict(line.pair); }},
};

// Those that disagree first.
std::vector<FlopCheckLine> LinesOf(const Trace& trace, const Check& check) {
  std::vector<FlopCheckLine> lines;
  for (const auto& [operation, pair] : check.pairs) {
    if (pair.ours.flops != 0 || pair.theirs.flops != 0) lines.push_back({&trace, operation, pair});
  }
  SortRows(&lines, [](const FlopCheckLine& a, const FlopCheckLine& b) {
    const auto key = [](const Pair& pair) {
      return std::pair(std::abs(pair.difference()), std::max(pair.ours.flops, pair.theirs.flops));
    };
    return key(a.pair) > key(b.pair);
  });
  return lines;
}

std::string DescribeCheck(const std::vector<FlopCheckLine>& lines) {
  int64_t differing = 0, ours = 0, theirs = 0;
  for (const FlopCheckLine& line : lines) {
    differing += line.pair.difference() == 0 ? 0 : 1;
    AddCapped(line.pair.ours.flops, &ours);
    AddCapped(line.pair.theirs.flops, &theirs);
  }
  return differing == 0
             ? fmt::format("all {} agree: {} FLOPs", lines.size(), ours)
             : fmt::format("{} of {} do not agree: {} FLOPs by our formulas, {} by FlopCounterMode",
                           differing, lines.size(), ours, theirs);
}

}  // namespace

Table TabulateFlopCheck(const Run& run, const ReportOptions&) {
  std::vector<FlopCheckLine> lines;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    Check check;
    ReadTheirs(trace, &check);
    if (check.start == kUntimed) continue;
    if (check.end == kUntimed) {
      notes.push_back(fmt::format("{}: the check did not end", RankName(trace)));
      continue;
    }
    CountOurs(trace, &check);
    std::vector<FlopCheckLine> of_rank = LinesOf(trace, check);
    notes.push_back((lines.empty() ? "" : RankName(trace) + ": ") + DescribeCheck(of_rank));
    std::move(of_rank.begin(), of_rank.end(), std::back_inserter(lines));
  }
  if (lines.empty() && notes.empty()) {
    notes.emplace_back(
        "nothing was checked: ranktap run --level full --flop-check does it, in one step; ranks "
        "says why not");
  }
  Table table = TableOf("FLOPs of one step, by our formulas and by PyTorch's FlopCounterMode",
                        kFlopCheckColumns, lines);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector
