#include "collector/terminal/progress_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "collector/terminal/output_style.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kQuietTime{1000}, kBetween{200};

}  // namespace

std::string ProgressText(const char* what, uint64_t done, uint64_t total, double seconds) {
  if (total == 0) return fmt::format("{}, {:.0f} s", what, seconds);
  // As long as somebody waits there is something left to do.
  const double share = std::min(0.99, static_cast<double>(done) / static_cast<double>(total));
  std::string text = fmt::format("{} {:3.0f} %", what, 100 * share);
  if (share > 0) text += fmt::format(", {:.0f} s left", seconds * (1 - share) / share);
  return text;
}

ProgressLine::ProgressLine() {
  if (Style().quiet || ::isatty(STDERR_FILENO) != 1) return;
  thread_ = std::thread([this] { Show(); });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void ProgressLine::Show() {
  std::unique_lock lock(mutex_);
  const char* what = nullptr;
  Clock::time_point begin = Clock::now();
  bool is_shown = false;
  auto wait = kQuietTime;
  while (!ended_.wait_for(lock, wait, [this] { return is_over_; })) {
    wait = kBetween;
    const WorkProgress& work = Progress();
    if (what == nullptr) what = work.what;
    if (what != work.what) {
      what = work.what;
      begin = Clock::now();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::fprintf(stderr, "\r\x1b[K%s", ProgressText(what, work.done, work.total, seconds).c_str());
    is_shown = true;
  }
  if (is_shown) std::fputs("\r\x1b[K", stderr);
}

}  // namespace ranktap::collector
