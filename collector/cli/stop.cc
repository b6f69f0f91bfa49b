// `ranktap stop`: capture ends on all ranks of a job at the same instant.
#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

int StopCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  bool no_wait = false;
  Arguments app(
      "Ends capture on every rank of a job at the same instant: nothing stays armed, and what was\n"
      "launched by then is still recorded. The job and its collector go on.",
      "ranktap stop");
  AddTargetOptions(&app, &target);
  app.AddFlag("--all", &target.all, "every job of every collector that is found");
  app.AddFlag("--no-wait", &no_wait, "do not wait for the ranks to confirm");
  if (const auto status = app.Parse(arguments)) return *status;
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_STOP);
  return OrderLevels(target, request, !no_wait);
}

}  // namespace ranktap::collector
