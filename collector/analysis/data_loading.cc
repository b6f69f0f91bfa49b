#include "collector/analysis/data_loading.h"

#include <algorithm>
#include <string_view>

#include "collector/analysis/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

bool LoadsData(std::string_view name) {
  for (const std::string_view part : {"DataLoader", "dataloader", "data_loader", "data loading",
                                      "get_batch", "next_batch", "load_batch", "__next__"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

template <typename Named>
void AddLoading(const Trace& trace, const Named& table, std::vector<Interval>* set) {
  std::vector<int8_t> loads(trace.dictionary.strings() + 1, -1);
  for (size_t i = 0; i < table.size(); ++i) {
    int8_t& known = loads[std::min<size_t>(table.name[i], loads.size() - 1)];
    if (known < 0) known = LoadsData(trace.dictionary.String(table.name[i])) ? 1 : 0;
    if (known == 1) set->emplace_back(table.start[i], table.end[i]);
  }
}

}  // namespace

std::vector<Interval> DataLoading(const Trace& trace) {
  std::vector<Interval> set;
  AddLoading(trace, trace.ranges, &set);
  AddLoading(trace, trace.operators, &set);
  AddLoading(trace, trace.python_calls, &set);
  return Merged(std::move(set));
}

}  // namespace ranktap::collector
