// The collectives and messages of a rank's host, as nodes of a work graph have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct HostCollective {
  int64_t start = 0, end = 0;
  std::string type, group;
  int64_t bytes = 0;
  uint32_t op = kNone;  // the operator that it is; of a capture only messages are one
};

struct HostCollectives {
  std::vector<HostCollective> list;
  std::vector<bool> are_operators;  // by operator: it is one of them, or the same again
};

// Those that `options` keeps.
HostCollectives FindHostCollectives(const Run& run, const Trace& trace,
                                    const ExportOptions& options);

}  // namespace ranktap::collector
