// Code that is compiled or loaded in steps that should find it there.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "collector/file/json.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/first_time.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfRecompilation = 0.01;  // of the step

class Compilation {
 public:
  explicit Compilation(const RankFacts& rank) : rank_(rank) {
    const Trace& trace = rank.trace();
    const ApiCalls& calls = trace.api_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!IsLoad(calls.api[i])) continue;
      Add(trace.dictionary.Api(calls.api[i]).name, calls.writer[i], calls.start[i], calls.end[i]);
    }
    AddNamed(trace.operators);
    AddNamed(trace.ranges);
    AddNamed(trace.python_calls);
    for (const proto::JitEvent& jit : trace.jits) {
      const auto start = static_cast<int64_t>(jit.start_ns), end = static_cast<int64_t>(jit.end_ns);
      if (!rank.IsCounted(start)) continue;
      moments_.emplace_back(start, end);
      by_name_["the driver's own compiler"] += end - start;
    }
    moments_ = Merged(std::move(moments_));
  }

  const std::vector<Interval>& moments() const { return moments_; }
  std::string Most() const { return KeyOfMost(by_name_); }
  std::string Place() const { return KeyOfMost(by_place_); }

 private:
  bool IsLoad(uint32_t api) {
    const auto [known, is_new] = loads_.try_emplace(api);
    if (is_new) known->second = LoadsCode(rank_.trace().dictionary.Api(api).name);
    return known->second;
  }
  template <typename Named>
  void AddNamed(const Named& table) {
    std::map<uint32_t, bool> compiles;
    for (size_t i = 0; i < table.size(); ++i) {
      const auto [known, is_new] = compiles.try_emplace(table.name[i]);
      const std::string_view name = rank_.trace().dictionary.String(table.name[i]);
      if (is_new) known->second = Compiles(name);
      if (known->second) Add(name, table.writer[i], table.start[i], table.end[i]);
    }
  }
  void Add(std::string_view name, uint16_t writer, int64_t start, int64_t end) {
    if (!rank_.IsCounted(start)) return;
    moments_.emplace_back(start, end);
    by_name_[std::string(name)] += end - start;
    by_place_[rank_.PlaceAt(writer, start)] += end - start;
  }
  static std::string KeyOfMost(const std::map<std::string, int64_t>& sums) {
    const auto most =
        std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second; });
    return most == sums.end() ? "" : most->first;
  }

  const RankFacts& rank_;
  std::vector<Interval> moments_;
  std::map<uint32_t, bool> loads_;
  std::map<std::string, int64_t> by_name_, by_place_;
};

// Why Dynamo compiled again what it had compiled, as PyTorch says it.
struct Reason {
  std::string place, text;
  int64_t count = 0;
  std::string Sentence() const {
    if (count == 0) return "";
    return fmt::format(" Dynamo compiled {} again {}, because a guard failed: {}.", place,
                       Counted(static_cast<size_t>(count), "time"), text);
  }
};

Reason MostFrequentReason(const Trace& trace) {
  constexpr proto::RowFields kRow = proto::kRecompilationsRow;
  std::map<std::string, Reason> by_place;  // the reasons of one place differ in values
  for (const std::string_view line :
       MarkedLines(trace, kOperatorDomain, proto::kRecompilationsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() < kRow.size() || !row[kRow["place"]].is_string() ||
        !row[kRow["reason"]].is_string() || !row[kRow["count"]].is_number_integer()) {
      continue;
    }
    Reason& reason = by_place[row[kRow["place"]].get<std::string>()];
    reason.text = row[kRow["reason"]].get<std::string>();
    reason.count += row[kRow["count"]].get<int64_t>();
  }
  Reason most;
  for (auto& [place, reason] : by_place) {
    if (reason.count <= most.count) continue;
    most = std::move(reason);
    most.place = place.substr(place.rfind('/') + 1);
  }
  return most;
}

}  // namespace

Answer FindRecompilation(const RankFacts& rank) {
  if (!rank.has_steps()) return CannotTell("no steps are known");
  const Trace& trace = rank.trace();
  if (trace.api_calls.size() == 0 && trace.operators.size() == 0) {
    return CannotTell("nothing of the host is recorded");
  }
  Compilation found(rank);
  const int64_t lost = rank.PerStep(Length(found.moments()));
  if (!rank.IsWorth(lost, kLeastShareOfRecompilation)) return {};
  const auto count = static_cast<int64_t>(found.moments().size());
  const Reason reason = MostFrequentReason(trace);
  const std::string where = reason.place.empty() ? found.Place() : reason.place;
  return {.insights = {
              {.finding = fmt::format(
                   "After the warm-up code is still compiled or loaded {}, for {} {} ({}); most of "
                   "it in {}.{}",
                   rank.TimesAStep(count), FormatNs(lost), rank.OfStep(),
                   FormatShare(lost, rank.step_ns()), found.Most(), reason.Sentence()),
               .where = where,
               .count = count,
               .lost_ns = lost,
               .saving = Saving{.moments = found.moments(), .causes = BitOf(Cause::kHost)}}}};
}

}  // namespace ranktap::collector
