// Several files at a time, one thread a core.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {

// load(path) of each path, in their order. `load` is called from several threads at once. `bytes`:
// of all, where load() counts them in Progress(); else files are counted.
template <typename Loaded>
std::vector<std::optional<Result<Loaded>>> LoadInParallel(
    const std::vector<std::string>& paths, Result<Loaded> (*load)(const std::string& path),
    uint64_t bytes = 0) {
  std::vector<std::optional<Result<Loaded>>> loaded(paths.size());
  const uint64_t files = paths.size() > 1 ? paths.size() : 0;
  Progress().Begin("loading", bytes > 0 ? bytes : files);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < loaded.size(); i = next++) {
      loaded[i] = load(paths[i]);
      if (bytes == 0) ++Progress().done;
    }
  };
  std::vector<std::jthread> threads;
  const size_t wanted =
      std::min<size_t>(loaded.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return loaded;
}

}  // namespace ranktap::collector
