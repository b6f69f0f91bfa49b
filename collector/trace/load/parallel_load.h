// Several files at a time, one thread a core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/at_once.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {

// load(path) of each path, in their order. `load` is called from several threads at once. `bytes`:
// of all, where load() counts them in Progress(); else files are counted.
template <typename Load>
auto LoadInParallel(const std::vector<std::string>& paths, Load&& load, uint64_t bytes = 0) {
  std::vector<std::optional<decltype(load(paths[0]))>> loaded(paths.size());
  const uint64_t files = paths.size() > 1 ? paths.size() : 0;
  Progress().Begin("loading", bytes > 0 ? bytes : files);
  ForEachAtOnce(loaded.size(), [&](size_t i) {
    const BusyThreads this_one;
    loaded[i] = load(paths[i]);
    if (bytes == 0) ++Progress().done;
  });
  return loaded;
}

}  // namespace ranktap::collector
