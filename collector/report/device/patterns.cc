#include "collector/report/device/patterns.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/facts/device_names.h"
#include "collector/facts/sequences/repeated_sequences.h"
#include "collector/facts/stream_numbers.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/device/operator_patterns.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLongestUnit = 64;

// Longer than this a pattern is cut in its short form; `kernels` has all of it.
constexpr size_t kLongestText = 400;

// "void at::native::copy_kernel<4>(float*)" is "copy_kernel", "Memset (Device)" is "Memset".
std::string ShortName(const std::string& full) {
  std::string name = ShortKernelName(full);
  for (const std::string_view end : {" (", "<"}) {
    if (const size_t at = name.find(end); at != 0 && at != name.npos) name.resize(at);
  }
  if (const size_t space = name.rfind("::"); space != name.npos) name.erase(0, space + 2);
  while (name.ends_with(' ')) name.pop_back();
  return name.empty() ? full : name;
}

// What repeats at the front of `symbols`: the unit whose repetitions cover most, of equals the
// shortest. {length of the unit, times}.
std::pair<size_t, size_t> RepetitionAt(std::span<const uint32_t> symbols) {
  std::pair<size_t, size_t> best = {1, 1};
  for (size_t unit = 1; unit <= std::min(kLongestUnit, symbols.size() / 2); ++unit) {
    size_t same = 0;  // symbols that equal the one a unit before
    while (unit + same < symbols.size() && symbols[same] == symbols[unit + same]) ++same;
    const size_t times = 1 + same / unit;
    if (times > 1 && times * unit > best.first * best.second) best = {unit, times};
  }
  return best;
}

// "a | b x3 | (c | d) x12"
std::string Fold(std::span<const uint32_t> symbols, const DeviceNames& names, bool brief) {
  std::string text;
  while (!symbols.empty()) {
    const auto [unit, times] = RepetitionAt(symbols);
    if (!text.empty()) text += " | ";
    if (unit == 1) {
      const std::string& name = names.Text(symbols[0]);
      text += brief ? ShortName(name) : name;
    } else {
      text += "(" + Fold(symbols.first(unit), names, brief) + ")";
    }
    if (times > 1) text += fmt::format(" x{}", times);
    symbols = symbols.subspan(unit * times);
  }
  return text;
}

std::string Brief(std::span<const uint32_t> symbols, const DeviceNames& names) {
  std::string text = Fold(symbols, names, true);
  if (text.size() <= kLongestText) return text;
  text.resize(std::min(text.rfind(" | ", kLongestText), kLongestText));
  return text + " | ...";
}

struct PatternRow {
  bool of_stream = false;
  std::string name, pattern, kernels;
  size_t length = 0, ranks = 0;
  int64_t count = 0, gpu_ns = 0, cpu_ns = 0, span_ns = 0;
  int64_t all_gpu_ns = 0;  // of all device work, in a pattern or not

  std::string kind() const { return of_stream ? "stream" : "operator"; }
};

struct StreamText {
  std::vector<uint32_t> symbols;
  std::vector<int64_t> weights;
  std::vector<Interval> spans;                      // nothing at separators
  std::vector<int64_t> gpu_until;                   // the weights before each place, added up
  std::vector<int64_t> last_end;                    // of the stream's work up to each place
  std::vector<std::pair<size_t, size_t>> begin_of;  // where each trace begins, and which it is

  bool IsSeparator(size_t place) const { return symbols[place] == kSeparator; }
  // When the last of the work from `place` on ends.
  int64_t EndOf(size_t place, size_t length) const {
    const size_t last = place + length - 1;
    // Else what ended then began before `place`.
    if (place == 0 || IsSeparator(place - 1) || last_end[last] > last_end[place - 1]) {
      return last_end[last];
    }
    int64_t end = spans[place].second;
    for (size_t i = place; i <= last; ++i) end = std::max(end, spans[i].second);
    return end;
  }
  size_t TraceAt(size_t place) const {
    return std::prev(std::ranges::upper_bound(begin_of, std::pair(place, SIZE_MAX)))->second;
  }
};

// By start, of equal starts the shorter first. Work comes by start.
void SortPieces(size_t from, size_t until, StreamText* text) {
  const auto key = [text](size_t i) { return std::pair(text->spans[i], text->symbols[i]); };
  size_t sorted = from + 1;
  while (sorted < until && key(sorted - 1) <= key(sorted)) ++sorted;
  if (sorted >= until) return;
  std::vector<std::pair<Interval, uint32_t>> work;
  for (size_t i = from; i < until; ++i) work.push_back(key(i));
  std::ranges::stable_sort(work);
  for (size_t i = from; i < until; ++i) {
    std::tie(text->spans[i], text->symbols[i]) = work[i - from];
  }
}

// The streams of one trace one after the other, by device and number; their work by start.
void WriteTrace(const Trace& trace, size_t t, const DeviceNames& names, StreamText* text) {
  const DeviceSpans& timeline = DeviceTimeline(trace);
  StreamNumbers streams;
  std::vector<size_t> places;  // by stream: how many pieces it has, then where the next stands
  for (const DeviceSpan& span : timeline) {
    const uint32_t stream = streams.Of(span);
    if (stream == places.size()) places.push_back(0);
    ++places[stream];
  }
  size_t end = text->symbols.size();
  text->begin_of.emplace_back(end, t);
  std::vector<std::pair<size_t, size_t>> pieces;
  for (const uint32_t stream : streams.Sorted()) {
    pieces.emplace_back(end, end + places[stream]);
    end += std::exchange(places[stream], end) + 1;
  }
  text->symbols.resize(end, kSeparator);
  text->spans.resize(end);
  for (const DeviceSpan& span : timeline) {
    const size_t place = places[streams.Of(span)]++;
    text->symbols[place] = names.Of(t, span);
    text->spans[place] = {span.start, span.end};
  }
  for (const auto& [from, until] : pieces) SortPieces(from, until, text);
}

// By rank.
StreamText WriteStreams(const Run& run, const DeviceNames& names) {
  StreamText text;
  std::vector<std::tuple<uint32_t, std::string, size_t>> order;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    order.emplace_back(run.traces[t].info.rank.value_or(UINT32_MAX), run.traces[t].info.file, t);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [rank, file, t] : order) WriteTrace(run.traces[t], t, names, &text);
  text.weights.resize(text.spans.size());
  text.gpu_until.resize(text.spans.size() + 1);
  text.last_end.resize(text.spans.size());
  int64_t last_end = INT64_MIN;
  for (size_t i = 0; i < text.spans.size(); ++i) {
    const auto& [start, end] = text.spans[i];
    if (!text.IsSeparator(i)) text.weights[i] = end - start;
    last_end = text.IsSeparator(i) ? INT64_MIN : std::max(last_end, end);
    text.last_end[i] = last_end;
    text.gpu_until[i + 1] = text.gpu_until[i] + text.weights[i];
  }
  return text;
}

std::vector<PatternRow> StreamRows(const Run& run, const DeviceNames& names, size_t shortest) {
  const StreamText text = WriteStreams(run, names);
  std::vector<PatternRow> rows;
  for (const RepeatedSequence& sequence : FindRepeatedSequences(
           text.symbols, text.weights, {.shortest = shortest, .most = kMostPatterns})) {
    PatternRow& row = rows.emplace_back();
    row.of_stream = true;
    row.length = sequence.symbols.size();
    row.pattern = Brief(sequence.symbols, names);
    row.kernels = Fold(sequence.symbols, names, false);
    row.count = static_cast<int64_t>(sequence.places.size());
    std::set<size_t> traces;
    for (const size_t place : sequence.places) {
      row.gpu_ns += text.gpu_until[place + row.length] - text.gpu_until[place];
      row.span_ns += text.EndOf(place, row.length) - text.spans[place].first;
      traces.insert(text.TraceAt(place));
    }
    row.ranks = traces.size();
  }
  return rows;
}

std::string JoinedAsHta(const OperatorPattern& pattern, const DeviceNames& names) {
  std::string text = pattern.name;
  for (const uint32_t symbol : pattern.symbols) text += "|" + names.Text(symbol);
  return text;
}

std::vector<PatternRow> OperatorRows(const Run& run, const DeviceNames& names,
                                     DeviceNames::Timeline timeline, const OperatorChoice& choice) {
  std::vector<PatternRow> rows;
  for (const OperatorPattern& pattern : FindOperatorPatterns(run, names, timeline, choice)) {
    rows.push_back(
        {.name = pattern.name,
         .pattern = choice.as_hta ? JoinedAsHta(pattern, names) : Brief(pattern.symbols, names),
         .kernels = Fold(pattern.symbols, names, false),
         .length = pattern.symbols.size(),
         .ranks = pattern.traces.size(),
         .count = pattern.count,
         .gpu_ns = pattern.gpu_ns,
         .cpu_ns = pattern.cpu_ns});
  }
  std::sort(rows.begin(), rows.end(), [&choice](const PatternRow& a, const PatternRow& b) {
    const int64_t first = choice.as_hta ? a.count : a.gpu_ns;
    const int64_t second = choice.as_hta ? b.count : b.gpu_ns;
    return std::tie(second, a.name, a.kernels) < std::tie(first, b.name, b.kernels);
  });
  return rows;
}

int64_t DeviceTime(const Run& run, DeviceNames::Timeline timeline) {
  int64_t total = 0;
  for (const Trace& trace : run.traces) {
    for (const DeviceSpan& span : timeline(trace)) total += span.end - span.start;
  }
  return total;
}

const ColumnsOf<PatternRow> kPatternsColumns = {
    {"kind", Unit::kText,
     "stream: the sequence recurs on a stream; operator: it recurs under operators of one name.",
     [](const PatternRow& row) { return row.kind(); }},
    {"operator", Unit::kText, "The operator that runs it.",
     [](const PatternRow& row) { return row.of_stream ? Cell() : Cell(row.name); }},
    {"pattern", Unit::kText, "The names of its work in order; (a | b) x12 recurs inside.",
     [](const PatternRow& row) { return row.pattern; }},
    {"length", Unit::kCount, "The pieces of device work in it.",
     [](const PatternRow& row) { return static_cast<int64_t>(row.length); }},
    {"count", Unit::kCount, "How often it ran, without overlap.",
     [](const PatternRow& row) { return row.count; }},
    {"gpu_ns", Unit::kNs, "The device's time on all its runs.",
     [](const PatternRow& row) { return row.gpu_ns; }},
    {"share_percent", Unit::kPercent, "The share of the time of all device work.",
     [](const PatternRow& row) { return Percent(row.gpu_ns, row.all_gpu_ns); }},
    {"span_ns", Unit::kNs,
     "The time from first to last piece, over all runs; less gpu_ns it is the idle time inside.",
     [](const PatternRow& row) { return row.of_stream ? Cell(row.span_ns) : Cell(); },
     Shown::kDetail},
    {"cpu_ns", Unit::kNs, "The host's time in the operators.",
     [](const PatternRow& row) { return row.of_stream ? Cell() : Cell(row.cpu_ns); },
     Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that ran it.",
     [](const PatternRow& row) { return static_cast<int64_t>(row.ranks); }, Shown::kDetail},
    {"kernels", Unit::kText, "The names of its kernels.",
     [](const PatternRow& row) { return row.kernels; }, Shown::kDetail},
};

std::string WhyNone(const ReportOptions& options, size_t shortest) {
  const std::string kernels = fmt::format("{} or more kernels", shortest);
  return options.operator_name.empty()
             ? fmt::format("no sequence of {} came twice (--min-length)", kernels)
             : fmt::format("no operator whose name contains '{}' launched {} (--min-length)",
                           options.operator_name, kernels);
}

}  // namespace

Table TabulatePatterns(const Run& run, const ReportOptions& options) {
  const DeviceNames::Timeline timeline = options.hta_compat ? &HtaDeviceTimeline : &DeviceTimeline;
  const DeviceNames names(run, timeline);
  const auto shortest = static_cast<size_t>(std::max(options.shortest_pattern, 2));
  const bool all = !options.hta_compat && options.operator_name.empty();
  std::vector<PatternRow> rows;
  if (all) rows = StreamRows(run, names, shortest);
  std::vector<PatternRow> of_operators =
      OperatorRows(run, names, timeline, {options.operator_name, shortest, options.hta_compat});
  const size_t found = of_operators.size();
  if (all && found > kMostPatterns) of_operators.resize(kMostPatterns);
  std::move(of_operators.begin(), of_operators.end(), std::back_inserter(rows));
  const int64_t total = DeviceTime(run, timeline);
  for (PatternRow& row : rows) row.all_gpu_ns = total;
  Table table = TableOf("Sequences of kernels that recur", kPatternsColumns, rows);
  if (all && found > kMostPatterns) {
    table.notes.push_back(
        fmt::format("the {} operators' sequences of {} with the most device time; --operator NAME "
                    "shows all of one",
                    kMostPatterns, found));
  }
  if (rows.empty()) table.notes.push_back(WhyNone(options, shortest));
  return table;
}

}  // namespace ranktap::collector
