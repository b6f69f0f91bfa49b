#include "collector/report/claims/late_loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/samples/loader_line.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {

namespace {

// "The loader is late because ... takes 71.0 % of the time of its 2 workers; 4 workers would hide
// it."
std::string DescribeWork(const LoaderLine& line) {
  const std::string workers =
      line.workers == 1 ? "one worker" : fmt::format("{} workers", line.workers);
  const std::string wanted =
      line.wanted == 0 ? "" : fmt::format("; {} workers would hide it", line.wanted);
  if (!line.text.empty()) {
    const bool has_call = line.text.find(", in ") != std::string::npos;
    return fmt::format("The loader is late because {}{} takes {} of the time of its {}{}.",
                       line.text, has_call ? "," : "", FormatShare(line.ns, line.busy_ns), workers,
                       wanted);
  }
  if (wanted.empty()) return "";
  return fmt::format("No one line takes most of the time of the loader's {}{}.", workers, wanted);
}

std::string DescribeReads(const LoaderLine& line) {
  if (line.read_files.empty()) return "";
  const bool is_told = line.read_line.empty() || line.read_line == line.text;
  return fmt::format("{} {} for {} of {} time{}{}.",
                     line.workers == 1 ? "Its worker reads" : "Its workers read", line.read_files,
                     FormatShare(line.read_ns, line.busy_ns), line.workers == 1 ? "its" : "their",
                     is_told ? "" : ", at ", is_told ? "" : line.read_line);
}

std::string DescribeStart(const LoaderLine& line) {
  if (line.starting_ns == 0) return "";
  return fmt::format(
      "The loader's workers spend {} of the time on starting{}{}; "
      "persistent_workers=True starts them once.",
      FormatShare(line.starting_ns, line.all_ns), line.starting_text.empty() ? "" : ", most at ",
      line.starting_text);
}

std::string DescribePinning(const LoaderLine& line) {
  if (line.pinning_ns == 0) return "";
  return fmt::format("The thread that pins memory does so for {} of the time.",
                     FormatShare(line.pinning_ns, line.all_ns / line.workers));
}

std::string DescribeLateWorker(const LoaderLine& line) {
  if (line.late_worker < 0) return "";
  return fmt::format("Its worker {} is the late one: it was busy for {}, the median is {}.",
                     line.late_worker, FormatNs(line.late_ns), FormatNs(line.median_ns));
}

std::string DescribeQueue(const LoaderQueue& queue) {
  constexpr size_t kFewest = 5;
  if (queue.asked < kFewest) return "";
  if (queue.empty * 2 > queue.asked) {
    return fmt::format("No batch was ready at {} of {} requests.", queue.empty, queue.asked);
  }
  return fmt::format("A batch was ready at {} of {} requests: the time goes into taking it.",
                     queue.asked - queue.empty, queue.asked);
}

}  // namespace

std::string DescribeLateLoader(const Trace& trace, const RankWaterfall& waterfall) {
  const LoaderLine line = FindLoaderLine(trace, waterfall);
  std::string text;
  for (const std::string& part :
       {DescribeWork(line), DescribeReads(line), DescribeStart(line), DescribeLateWorker(line),
        DescribePinning(line), DescribeQueue(QueueOfLoader(trace, waterfall))}) {
    if (!part.empty()) text += (text.empty() ? "" : " ") + part;
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
