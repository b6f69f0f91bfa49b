// The checks that the doctor makes. One line a check.
#include "collector/doctor/finding.h"

namespace ranktap::collector {
namespace {

constexpr Check kChecks[] = {
    {"driver", "Is there a driver, and may this user open its devices?", &CheckDriver},
    {"cupti", "Which copies of CUPTI are there, and do they fit the driver?", &CheckCupti},
    {"counters", "May this user read hardware counters?", &CheckCounterPermission},
    {"nvml", "Can clocks, power and temperature be read?", &CheckNvml},
    {"agent", "Can the agent be loaded?", &CheckAgent},
    {"kernel", "Does the kernel give what the agent needs?", &CheckKernel},
    {"ptrace", "May ranktap look into a running process?", &CheckPtrace},
    {"perf", "May ranktap sample processes?", &CheckPerf},
    {"limits", "Do this shell's limits leave room?", &CheckLimits},
    {"socket", "Where do agents and collector meet?", &CheckSocket},
    {"spool", "Where do events go without a collector?", &CheckSpool},
    {"variables", "Does the environment send programs to another tool?", &CheckVariables},
    {"holders", "Who holds CUPTI now?", &CheckHolders},
    {"run", "How did the last run go, and what did each rank lack?", &CheckLastRun},
};

}  // namespace

std::span<const Check> AllChecks() { return kChecks; }

std::string_view NameOf(Severity severity) {
  constexpr std::string_view kNames[] = {"ok", "note", "warning", "problem"};
  return kNames[static_cast<size_t>(severity)];
}

}  // namespace ranktap::collector
