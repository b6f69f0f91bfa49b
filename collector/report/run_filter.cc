#include "collector/report/run_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/trace/group_calls.h"
#include "collector/trace/launch_join.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The rows of a trace that are kept.
class Windows {
 public:
  Windows(const StepList& steps, const NumberSet& numbers) : on_device(steps.on_device) {
    for (const Step& step : steps.list) {
      if (numbers.contains(step.number)) windows_.emplace_back(step.start, step.end);
    }
  }
  explicit Windows(const Interval& window) : on_device(true), windows_{window} {}
  bool contain(int64_t time) const {
    const auto after =
        std::upper_bound(windows_.begin(), windows_.end(), Interval{time, INT64_MAX});
    return after != windows_.begin() && time < std::prev(after)->second;
  }
  const bool on_device;  // device work counts by when it ran, not by its launch

 private:
  std::vector<Interval> windows_;
};

template <typename Table>
void Keep(const Trace& trace, const Windows& windows, Table* table) {
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < table->size(); ++i) {
    int64_t at = table->start[i];
    if constexpr (std::is_base_of_v<DeviceWork, Table>) {
      if (table->launch[i] != kNone && !windows.on_device)
        at = trace.api_calls.start[table->launch[i]];
    }
    if (windows.contain(at)) kept.push_back(i);
  }
  PermuteTable(*table, kept);
}

// They name operators by row: before those go.
void KeepTensorUses(const Windows& windows, Trace* trace) {
  std::vector<uint32_t> rows(trace->operators.size(), kNone);
  uint32_t next = 0;
  for (size_t op = 0; op < rows.size(); ++op) {
    if (windows.contain(trace->operators.start[op])) rows[op] = next++;
  }
  std::erase_if(trace->tensor_uses,
                [&rows](const TensorUse& use) { return rows[use.op] == kNone; });
  for (TensorUse& use : trace->tensor_uses) use.op = rows[use.op];
}

void KeepOfTrace(const Windows& windows, Trace* trace) {
  KeepTensorUses(windows, trace);
  // Calls go last: whose launch they are decides about the work.
  ForEachTable(*trace, [&](auto& table) {
    if (static_cast<const void*>(&table) != static_cast<const void*>(&trace->api_calls)) {
      Keep(*trace, windows, &table);
    }
  });
  Keep(*trace, windows, &trace->api_calls);
  JoinLaunches(trace);
  NestOperators(trace);
  JoinOperators(trace);
  GroupCalls calls = GroupCallsOf(*trace);
  trace->memo.Reset();
  KeepGroupCalls(std::move(calls), trace);
}

bool HasAnyIn(const Interval& window, const Trace& trace) {
  bool any = false;
  ForEachTable(trace, [&](const auto& table) {
    any |= std::any_of(table.start.begin(), table.start.end(), [&window](int64_t start) {
      return window.first <= start && start < window.second;
    });
  });
  return any;
}

}  // namespace

bool NumberSet::contains(int64_t number) const {
  return std::any_of(ranges.begin(), ranges.end(), [number](const auto& range) {
    return range.first <= number && number <= range.second;
  });
}

std::optional<NumberSet> ParseNumberSet(std::string_view text) {
  NumberSet set;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-', 1);
    const std::optional<int64_t> first = Number(part.substr(0, dash));
    const std::optional<int64_t> last = dash == part.npos ? first : Number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    set.ranges.emplace_back(*first, *last);
    if (comma == text.size()) return set;
    text.remove_prefix(comma + 1);
  }
}

std::string ListOf(const std::set<int64_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int64_t first = *at;
    int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

void KeepRanks(const NumberSet& ranks, Run* run) {
  run->memo.Reset();
  const bool is_alone = run->traces.size() == 1;
  std::erase_if(run->traces, [&ranks, is_alone](const Trace& trace) {
    if (is_alone && !trace.info.rank) return !ranks.contains(0);
    return !trace.info.rank || !ranks.contains(*trace.info.rank);
  });
}

Result<std::vector<std::string>> KeepSteps(const NumberSet& numbers, Run* run) {
  std::vector<std::string> notes;
  std::set<int64_t> known;
  for (const Trace& trace : run->traces) {
    for (const Step& step : DetectSteps(trace).list) known.insert(step.number);
  }
  if (!known.empty() && std::none_of(known.begin(), known.end(), [&numbers](int64_t number) {
        return numbers.contains(number);
      })) {
    return Failure{fmt::format("none of these steps is in the run; it has {}", ListOf(known))};
  }
  run->memo.Reset();
  for (Trace& trace : run->traces) {
    const StepList steps = DetectSteps(trace);
    if (steps.list.empty()) {
      notes.push_back(fmt::format("{} has no steps; all of it is in the answer", RankName(trace)));
      continue;
    }
    KeepOfTrace(Windows(steps, numbers), &trace);
  }
  return notes;
}

bool KeepWindows(std::span<const Interval> windows, Run* run) {
  bool any = false;
  for (size_t i = 0; i < run->traces.size(); ++i) any |= HasAnyIn(windows[i], run->traces[i]);
  if (!any) return false;
  run->memo.Reset();
  for (size_t i = 0; i < run->traces.size(); ++i) {
    KeepOfTrace(Windows(windows[i]), &run->traces[i]);
  }
  return true;
}

}  // namespace ranktap::collector
