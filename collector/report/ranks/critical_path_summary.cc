#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "collector/facts/causes/critical_path.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// All segments of one kind on one rank.
struct PathPiece {
  const Trace* trace = nullptr;
  PathSegment of;  // the first of them
  int64_t ns = 0, count = 0;
  int64_t path_ns = 0;  // of the whole path
  bool tells_waiting = true;
};

std::string WorkName(const PathPiece& piece) {
  if (piece.of.kernel != kNone) {
    return ReadableKernelName(piece.trace->dictionary.String(piece.of.kernel));
  }
  return piece.of.graph == kNone ? "" : fmt::format("CUDA graph {}", piece.of.graph);
}

const ColumnsOf<PathPiece> kCriticalPathColumns = {
    {"rank", Unit::kCount, "The rank whose work it is.",
     [](const PathPiece& piece) { return RankCell(*piece.trace); }},
    {"cause", Unit::kText, "The cause of these pieces of the path.",
     [](const PathPiece& piece) {
       return std::string(SaidName(piece.of.cause, piece.tells_waiting));
     }},
    {"kernel", Unit::kText, "The kernel or copy, or what the host did.",
     [](const PathPiece& piece) { return WorkName(piece); }},
    {"path_ns", Unit::kNs, "The time of the critical path that these pieces take.",
     [](const PathPiece& piece) { return piece.ns; }},
    {"path_percent", Unit::kPercent, "The share of the critical path.",
     [](const PathPiece& piece) { return Percent(piece.ns, piece.path_ns); }},
    {"pieces", Unit::kCount, "The number of pieces of the path.",
     [](const PathPiece& piece) { return piece.count; }},
};

// The longest first.
std::vector<PathPiece> SumPieces(const Run& run, const CriticalPath& path) {
  using Key = std::tuple<uint32_t, Cause, uint32_t, uint32_t>;
  std::map<Key, PathPiece> by_key;
  int64_t total = 0;
  const bool tells_waiting = TellsWaiting(run);
  // Gaps and some tens of kernels come in turn: a search for each took most of the table.
  std::array<std::pair<const Key, PathPiece>*, 256> last{};
  path.ForEach([&](const PathSegment& segment) {
    const Key key = {segment.trace, segment.cause, segment.kernel, segment.graph};
    auto*& at = last[(segment.kernel * 16 + static_cast<size_t>(segment.cause)) % last.size()];
    if (at == nullptr || at->first != key) {
      at = &*by_key.try_emplace(key, PathPiece{&run.traces[segment.trace], segment}).first;
    }
    at->second.ns += segment.ns;
    ++at->second.count;
    total += segment.ns;
  });
  std::vector<PathPiece> pieces;
  for (auto& [key, piece] : by_key) {
    piece.path_ns = total;
    piece.tells_waiting = tells_waiting;
    pieces.push_back(piece);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const PathPiece& a, const PathPiece& b) { return a.ns > b.ns; });
  return pieces;
}

std::string DescribePath(const Run& run, const CriticalPath& path) {
  std::vector<int64_t> by_rank(run.traces.size());
  int64_t total = 0;
  path.ForEach([&](const PathSegment& segment) {
    by_rank[segment.trace] += segment.ns;
    total += segment.ns;
  });
  const auto most = std::max_element(by_rank.begin(), by_rank.end());
  return fmt::format("the path is {} long; {} of it is on {}", FormatNs(total),
                     FormatShare(*most, total),
                     RankName(run.traces[static_cast<size_t>(most - by_rank.begin())]));
}

}  // namespace

Table TabulateCriticalPath(const Run& run, const ReportOptions&) {
  const CriticalPath none;
  const CriticalPath& path =
      std::ranges::any_of(run.traces, HasStarts) ? FindCriticalPath(run) : none;
  Table table = TableOf("What the end of the run waited for, all ranks", kCriticalPathColumns,
                        SumPieces(run, path));
  table.notes.push_back(path.empty() ? WhyNoWork(run) : DescribePath(run, path));
  return table;
}

}  // namespace ranktap::collector
