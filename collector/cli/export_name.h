// What `ranktap export` calls a file that nobody named.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "collector/export/exporter.h"

namespace ranktap::collector {

// In the folder one is in: "slow.pftrace" of the run `runs/slow/`, "slow-chrome" for the files of
// several ranks, "slow-export" for several formats. Never one of `paths`.
std::string DefaultOutput(const std::vector<std::string>& paths,
                          const std::vector<const Exporter*>& exporters, size_t ranks);

// What is said of a copied file's own metadata (ExportOptions::handed_on).
std::string DescribeHandedOn(const std::set<std::string>& names);

}  // namespace ranktap::collector
