#include "collector/report/claims/late_loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "collector/facts/samples/loader_line.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {

std::string DescribeLateLoader(const Trace& trace, const RankWaterfall& waterfall) {
  const LoaderLine line = FindLoaderLine(trace, waterfall);
  if (line.workers == 0) return "";
  const std::string workers =
      line.workers == 1 ? "one worker" : fmt::format("{} workers", line.workers);
  const std::string wanted =
      line.wanted == 0 ? "" : fmt::format("; {} workers would hide it", line.wanted);
  std::string text;
  if (!line.text.empty()) {
    const bool has_call = line.text.find(", in ") != std::string::npos;
    text =
        fmt::format("The loader is late because {}{} takes {} of the time of its {}{}.", line.text,
                    has_call ? "," : "", FormatShare(line.ns, line.busy_ns), workers, wanted);
  } else if (!wanted.empty()) {
    text = fmt::format("No one line takes most of the time of the loader's {}{}.", workers, wanted);
  }
  if (line.late_worker >= 0) {
    text += fmt::format("{}Its worker {} is the late one: it was busy for {}, the median is {}.",
                        text.empty() ? "" : " ", line.late_worker, FormatNs(line.late_ns),
                        FormatNs(line.median_ns));
  }
  return text;
}

std::string DescribeLateLoader(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const auto most = std::ranges::max_element(waterfalls, {}, [](const RankWaterfall& waterfall) {
    return waterfall.mean[static_cast<size_t>(Cause::kDataLoading)];
  });
  if (most == waterfalls.end()) return "";
  return DescribeLateLoader(run.traces[static_cast<size_t>(most - waterfalls.begin())], *most);
}

}  // namespace ranktap::collector
