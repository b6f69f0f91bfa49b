// What a person sees of work that takes longer than a second: a line on stderr, "loading 40 %, 3 s
// left", rewritten and at the end removed. None where stderr is not a terminal or --quiet was
// given.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace ranktap::collector {

class ProgressLine {
 public:
  ProgressLine();   // watches Progress()
  ~ProgressLine();  // the line is gone
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void Show();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

// "loading  40 %, 3 s left", without the time where nothing is done yet. `total` 0: "loading, 2 s".
std::string ProgressText(const char* what, uint64_t done, uint64_t total, double seconds);

}  // namespace ranktap::collector
