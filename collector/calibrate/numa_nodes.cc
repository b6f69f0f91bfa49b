#include "collector/calibrate/numa_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

constexpr int kMostNodes = 256;

// "0-3,8"
std::vector<int> CoresOf(const char* list) {
  std::vector<int> cores;
  constexpr long kMost = 1 << 16;
  while (*list >= '0' && *list <= '9') {
    char* end = nullptr;
    const long first = std::strtol(list, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long core = first; core <= std::min(last, kMost); ++core) {
      cores.push_back(static_cast<int>(core));
    }
    list = *end == ',' ? end + 1 : end;
  }
  return cores;
}

}  // namespace

std::map<int, std::vector<int>> NumaNodes(const std::string& folder,
                                          const std::vector<int>& allowed) {
  std::map<int, std::vector<int>> nodes;
  for (int node = 0; node < kMostNodes; ++node) {
    const auto list =
        ReadRegularFile(folder + "/node" + std::to_string(node) + "/cpulist", 64 << 10);
    if (!list) continue;
    std::vector<int> cores = CoresOf(list->c_str());
    std::erase_if(
        cores, [&allowed](int core) { return std::ranges::find(allowed, core) == allowed.end(); });
    if (!cores.empty()) nodes.emplace(node, std::move(cores));
  }
  return nodes;
}

}  // namespace ranktap::collector
