// Measures what this host's processor can do, by the method of ERT: chains of multiply-adds, and a
// triad over working sets of each cache and of memory, on one core and on all.
#pragma once

#include <optional>
#include <string>

#include "collector/facts/roofline/host_roofs.h"
#include "collector/file/result.h"

namespace ranktap::collector {

// Takes some seconds of all cores that the process may use.
HostRoofs CalibrateHost();

// JSON, as reports read it.
std::string RoofsText(const HostRoofs& roofs);
Result<HostRoofs> ParseRoofs(std::string_view text);

// Where a host's file lies: $XDG_DATA_HOME/ranktap/roofs/HOST.json. Empty: no home, or no such
// name.
std::string RoofsPath(std::string_view host);

}  // namespace ranktap::collector
