#include "collector/cli/report_options.h"

#include <fmt/core.h>

#include <string>

#include "collector/cli/command.h"
#include "collector/facts/roofline/roofline_rows.h"
#include "collector/report/report.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

void AddRoofOptions(Arguments* app, ReportOptions* options) {
  constexpr const char* kGroup = "roofline";
  app->Add("--depth", &options->depth,
           "with --by module: how many parts of the name below the root share a row; else all")
      .From(0, 1'000)
      .Group(kGroup);
  app->Add("--device", &options->device,
           "draw the roofs of this device, as \"A100 80GB\", \"1080 Ti\"; else of the traces' own")
      .Group(kGroup);
  app->Add("--peak-bandwidth", &options->peak_bandwidth,
           "B/s that the device's memory can give, as 3.35e12; else its data sheet's")
      .Positive()
      .Group(kGroup);
}

void AddThroughputOptions(Arguments* app, ReportOptions* options) {
  const std::string kGroup = fmt::format("{} --format deepspeed...", NamesThatHeed(kModelFacts));
  app->Add("--peak-flops", &options->peak_flops,
           "most FLOP/s of one rank's device, as 989e12; else its data sheet's")
      .Positive()
      .Group(kGroup);
  app->Add("--batch-size", &options->batch_size,
           "samples in a micro-batch of one rank; else read off the first layer's input")
      .Positive()
      .Group(kGroup);
  app->Add("--data-parallel-size", &options->data_parallel,
           "ranks that train on different data; else told by the process groups")
      .Positive()
      .Group(kGroup);
}

bool DeviceIsKnown(const ReportOptions& options) {
  const std::optional<std::string> wrong = WrongWith(RoofQuestion{.device = options.device});
  if (wrong) Complain(*wrong);
  return !wrong;
}

}  // namespace ranktap::collector
