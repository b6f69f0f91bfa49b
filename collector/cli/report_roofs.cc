#include "collector/cli/report_roofs.h"

#include "collector/cli/command.h"
#include "collector/facts/roofline/roofline_rows.h"
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

bool DeviceIsKnown(const ReportOptions& options) {
  const std::optional<std::string> wrong = WrongWith(RoofQuestion{.device = options.device});
  if (wrong) Complain(*wrong);
  return !wrong;
}

}  // namespace ranktap::collector
