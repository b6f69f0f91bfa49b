// Which cores share a node of memory, as Linux numbers them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ranktap::collector {

// By node, of those that have some of `allowed`, which. `folder`:
// /sys/devices/system/node. Empty: it does not say.
std::map<int, std::vector<int>> NumaNodes(const std::string& folder,
                                          const std::vector<int>& allowed);

}  // namespace ranktap::collector
