#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/file/json.h"
#include "collector/report/page/page_pictures.h"

namespace ranktap::collector {
namespace {

// Of all ranks together, some 14 bytes each; and a rank's share of them at least.
constexpr size_t kMostPieces = 30'000, kFewestPieces = 400;
// A row is 19 pixels high.
constexpr uint32_t kMostDepth = 4, kMostStreams = 3, kMostThreads = 2;

enum class Kind : uint8_t { kLine, kModule, kOperator, kKernel };
constexpr std::array<std::string_view, 4> kKinds = {"line", "module", "operator", "kernel"};

struct Piece {
  int64_t start = 0, end = 0;
  uint32_t row = 0;  // of its table
  uint32_t at = 0;   // thread or device and stream
  uint32_t depth = 0;
  Kind kind = Kind::kKernel;
  int64_t length() const { return end - start; }
};

// The longest `most` of all that are added.
class LongestPieces {
 public:
  explicit LongestPieces(size_t most) : most_(most) {}
  void Add(const Piece& piece) {
    if (piece.length() <= 0) return;
    pieces_.push_back(piece);
    ++seen_;
    if (pieces_.size() >= 2 * most_ + 1'000) Cut();
  }
  std::vector<Piece> Take() {
    Cut();
    std::ranges::sort(pieces_, {}, [](const Piece& piece) {
      return std::tuple(piece.kind, piece.at, piece.depth, piece.start);
    });
    return std::move(pieces_);
  }
  size_t seen() const { return seen_; }

 private:
  void Cut() {
    if (pieces_.size() <= most_) return;
    const auto end = pieces_.begin() + static_cast<ptrdiff_t>(most_);
    std::nth_element(pieces_.begin(), end, pieces_.end(),
                     [](const Piece& a, const Piece& b) { return a.length() > b.length(); });
    pieces_.resize(most_);
  }
  size_t most_, seen_ = 0;
  std::vector<Piece> pieces_;
};

// The `most` keys with the most time.
std::vector<uint32_t> Busiest(const std::map<uint32_t, int64_t>& times, size_t most) {
  std::vector<std::pair<int64_t, uint32_t>> order;
  for (const auto& [key, ns] : times) order.emplace_back(-ns, key);
  std::ranges::sort(order);
  order.resize(std::min(order.size(), most));
  std::vector<uint32_t> keys;
  for (const auto& [ns, key] : order) keys.push_back(key);
  return keys;
}
bool Has(const std::vector<uint32_t>& keys, uint32_t key) {
  return std::ranges::find(keys, key) != keys.end();
}
uint32_t StreamOf(const DeviceSpan& span) { return span.device << 16 | (span.stream & 0xffff); }

void AddDevice(const Trace& trace, LongestPieces* pieces) {
  const DeviceSpans& spans = DeviceTimeline(trace);
  std::map<uint32_t, int64_t> times;
  for (const DeviceSpan& span : spans) times[StreamOf(span)] += span.end - span.start;
  const std::vector<uint32_t> streams = Busiest(times, kMostStreams);
  for (size_t i = 0; i < spans.size(); ++i) {
    const uint32_t stream = StreamOf(spans[i]);
    if (!Has(streams, stream)) continue;
    pieces->Add({.start = spans[i].start,
                 .end = spans[i].end,
                 .row = static_cast<uint32_t>(i),
                 .at = stream,
                 .kind = Kind::kKernel});
  }
}

void AddModules(const Trace& trace, LongestPieces* pieces) {
  const std::vector<ModuleSpan>& spans = ModuleSpans(trace);
  std::map<uint32_t, int64_t> times;
  for (const ModuleSpan& span : spans) {
    if (span.depth == 0) times[span.writer] += span.end - span.start;
  }
  const std::vector<uint32_t> threads = Busiest(times, 1);
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].depth >= kMostDepth || !Has(threads, spans[i].writer)) continue;
    pieces->Add({.start = spans[i].start,
                 .end = spans[i].end,
                 .row = static_cast<uint32_t>(i),
                 .at = spans[i].writer,
                 .depth = spans[i].depth,
                 .kind = Kind::kModule});
  }
}

void AddOperators(const Trace& trace, LongestPieces* pieces) {
  const Operators& ops = trace.operators;
  std::vector<uint8_t> depths(ops.size());
  std::map<uint32_t, int64_t> times;
  for (size_t i = 0; i < ops.size(); ++i) {
    const uint32_t parent = i < ops.parent.size() ? ops.parent[i] : kNone;
    if (parent != kNone) depths[i] = static_cast<uint8_t>(std::min(depths[parent] + 1, 200));
    if (depths[i] == 0) times[ops.writer[i]] += ops.end[i] - ops.start[i];
  }
  const std::vector<uint32_t> threads = Busiest(times, kMostThreads);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (depths[i] >= kMostDepth || !Has(threads, ops.writer[i])) continue;
    pieces->Add({.start = ops.start[i],
                 .end = ops.end[i],
                 .row = static_cast<uint32_t>(i),
                 .at = ops.writer[i],
                 .depth = depths[i],
                 .kind = Kind::kOperator});
  }
}

// One number a name, over all ranks.
class NameList {
 public:
  size_t Of(std::string_view name) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(name), numbers_.size());
    if (is_new) names_.push_back(name);
    return at->second;
  }
  Json Take() { return std::move(names_); }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  Json names_ = Json::array();
};

class Row {
 public:
  Row(Kind kind, std::string label)
      : row_({{"kind", kKinds[static_cast<size_t>(kind)]},
              {"label", std::move(label)},
              {"names", Json::array()},
              {"starts", Json::array()},
              {"ns", Json::array()}}) {}
  // Starts count from the one before.
  void Add(size_t name, int64_t start, int64_t ns) {
    row_["names"].push_back(name);
    row_["starts"].push_back(start - last_);
    row_["ns"].push_back(ns);
    last_ = start;
  }
  Json Take() { return std::move(row_); }

 private:
  Json row_;
  int64_t last_ = 0;
};

std::string NameOf(const Trace& trace, const Piece& piece) {
  switch (piece.kind) {
    case Kind::kKernel:
      return NameOf(trace, DeviceTimeline(trace)[piece.row]);
    case Kind::kModule:
      return std::string(trace.dictionary.String(ModuleSpans(trace)[piece.row].name));
    default:
      return std::string(trace.dictionary.String(trace.operators.name[piece.row]));
  }
}
std::string LabelOf(const Piece& piece) {
  if (piece.kind == Kind::kKernel) return "str. " + std::to_string(piece.at & 0xffff);
  return piece.depth > 0 ? "" : std::string(kKinds[static_cast<size_t>(piece.kind)]);
}

// The program's lines that outermost operators are called from: a line lasts until the next.
void AddLines(const Trace& trace, const std::vector<Piece>& pieces, int64_t first, NameList* names,
              Json* rows) {
  const ProgramLines lines(trace);
  Row row(Kind::kLine, "line");
  std::string open;
  int64_t start = 0, end = 0;
  size_t count = 0;
  const auto close = [&] {
    if (open.empty()) return;
    row.Add(names->Of(open), start - first, end - start);
    ++count;
  };
  uint32_t thread = kNone;
  for (const Piece& piece : pieces) {
    if (piece.kind != Kind::kOperator || piece.depth != 0) continue;
    if (thread == kNone) thread = piece.at;
    const auto line = lines.OfOperator(piece.row);
    if (piece.at != thread || line.empty()) continue;
    if (line != open) {
      close();
      open = line;
      start = piece.start;
    }
    end = piece.end;
  }
  close();
  if (count > 0) rows->push_back(row.Take());
}

Json RowsOf(const Trace& trace, const std::vector<Piece>& pieces, int64_t first, NameList* names) {
  Json rows = Json::array();
  AddLines(trace, pieces, first, names, &rows);
  for (size_t i = 0; i < pieces.size();) {
    const Piece& head = pieces[i];
    Row row(head.kind, LabelOf(head));
    for (; i < pieces.size() && pieces[i].kind == head.kind && pieces[i].at == head.at &&
           pieces[i].depth == head.depth;
         ++i) {
      row.Add(names->Of(NameOf(trace, pieces[i])), pieces[i].start - first, pieces[i].length());
    }
    rows.push_back(row.Take());
  }
  return rows;
}

}  // namespace

Json PageNames(const Run& run) {
  const int64_t first = FirstEvent(run);
  const size_t most = std::max(kFewestPieces, kMostPieces / std::max<size_t>(run.traces.size(), 1));
  NameList names;
  Json ranks = Json::array();
  size_t left_out = 0;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    LongestPieces longest(most);
    AddModules(run.traces[t], &longest);
    AddOperators(run.traces[t], &longest);
    AddDevice(run.traces[t], &longest);
    const std::vector<Piece> pieces = longest.Take();
    left_out += longest.seen() - pieces.size();
    if (pieces.empty()) continue;
    ranks.push_back({{"trace", t}, {"rows", RowsOf(run.traces[t], pieces, first, &names)}});
  }
  return {{"names", names.Take()}, {"left_out", left_out}, {"ranks", std::move(ranks)}};
}

}  // namespace ranktap::collector
