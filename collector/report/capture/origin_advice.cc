#include "collector/report/capture/origin_advice.h"

#include <fmt/core.h>

namespace ranktap::collector {

std::string AdviceFor(const Run& run, const OriginAdvice& advice) {
  if (run.traces.empty() || run.traces[0].is_ours()) return std::string(advice.ours);
  if (run.traces[0].origin == TraceOrigin::kKineto) return std::string(advice.profiler);
  if (!advice.other.empty()) return std::string(advice.other);
  return fmt::format("{}; {}", advice.ours, advice.profiler);
}

std::string WhoRecordsMemory(const Run& run) {
  return AdviceFor(run, {.ours = "ranktap run --level full records PyTorch's in the steps of "
                                 "--schedule",
                         .profiler = "torch.profiler records them with profile_memory=True"});
}

std::string WhyNoModel(const Run& run) {
  constexpr std::string_view kImported =
      "the file describes no model; ranktap run --level full does";
  return AdviceFor(run, {.ours = "no model was described; PyTorch's hooks do it after the first "
                                 "step, at --level full",
                         .profiler = kImported,
                         .other = kImported});
}

}  // namespace ranktap::collector
