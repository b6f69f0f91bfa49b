// What `ranktap doctor` found out about one thing, and what to do about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/doctor/host_view.h"

namespace ranktap::collector {

enum class Severity { kOk, kNote, kWarning, kProblem };
std::string_view NameOf(Severity severity);

struct Finding {
  Severity severity = Severity::kOk;
  std::string what;    // a sentence
  std::string advice;  // what to do next; empty: nothing
};

struct Check {
  std::string_view name;  // one word
  std::string_view question;
  std::vector<Finding> (*run)(const HostView& host);
};

// In the order of the output (registry.cc).
std::span<const Check> AllChecks();

// The checks, by the file they are in.
std::vector<Finding> CheckDriver(const HostView& host);
std::vector<Finding> CheckCupti(const HostView& host);
std::vector<Finding> CheckCounterPermission(const HostView& host);
std::vector<Finding> CheckNvml(const HostView& host);
std::vector<Finding> CheckKernel(const HostView& host);
std::vector<Finding> CheckPtrace(const HostView& host);
std::vector<Finding> CheckPerf(const HostView& host);
std::vector<Finding> CheckLimits(const HostView& host);
std::vector<Finding> CheckAgent(const HostView& host);
std::vector<Finding> CheckSocket(const HostView& host);
std::vector<Finding> CheckSpool(const HostView& host);
std::vector<Finding> CheckVariables(const HostView& host);
std::vector<Finding> CheckHolders(const HostView& host);
std::vector<Finding> CheckLastRun(const HostView& host);

}  // namespace ranktap::collector
