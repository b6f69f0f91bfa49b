#include "collector/facts/device_names.h"

#include <algorithm>
#include <set>

namespace ranktap::collector {
using Table = DeviceSpan::Table;

uint64_t KeyOfName(const Trace& trace, const DeviceSpan& span) {
  uint64_t what = span.name;
  if (span.table == Table::kCopy) {
    what = uint64_t{trace.copies.copy_kind[span.row]} << 16 |
           uint64_t{trace.copies.src_kind[span.row]} << 8 | trace.copies.dst_kind[span.row];
  } else if (span.table == Table::kMemset) {
    what = trace.memsets.memory_kind[span.row];
  } else if (span.table == Table::kSync) {
    what = trace.syncs.type[span.row];
  } else if (span.table == Table::kGraphLaunch) {
    what = trace.graph_launches.graph.At(span.row);
  }
  return static_cast<uint64_t>(span.table) << 32 | what;
}

DeviceNames::DeviceNames(const Run& run, Timeline timeline)
    : run_(run), traces_(run.traces.size()) {
  std::map<std::string, uint32_t> numbers;
  // First who is there, by a span of each name; then numbers in the order of the texts.
  std::vector<std::vector<std::pair<DeviceSpan, const std::string*>>> samples(run.traces.size());
  for (size_t t = 0; t < run.traces.size(); ++t) {
    const Trace& trace = run.traces[t];
    std::vector<bool> kernels;
    std::set<uint64_t> others;
    for (const DeviceSpan& span : timeline(trace)) {
      if (span.table == Table::kKernel) {
        if (span.name >= kernels.size()) kernels.resize(span.name + 1);
        if (kernels[span.name]) continue;
        kernels[span.name] = true;
      } else if (!others.insert(KeyOfName(trace, span)).second) {
        continue;
      }
      samples[t].emplace_back(span, &numbers.try_emplace(NameOf(trace, span), 0).first->first);
    }
    traces_[t].kernels.resize(kernels.size());
  }
  for (auto& [text, number] : numbers) {
    number = static_cast<uint32_t>(texts_.size());
    texts_.push_back(text);
  }
  for (size_t t = 0; t < run.traces.size(); ++t) {
    for (const auto& [span, text] : samples[t]) {
      const uint32_t number = numbers.at(*text);
      if (span.table == Table::kKernel) {
        traces_[t].kernels[span.name] = number;
      } else {
        traces_[t].others[KeyOfName(run.traces[t], span)] = number;
      }
    }
  }
}

}  // namespace ranktap::collector
