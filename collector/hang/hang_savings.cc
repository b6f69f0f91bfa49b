#include "collector/hang/hang_savings.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace ranktap::collector {

HangSavings::HangSavings(Saved saved)
    : saved_(std::move(saved)), filled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void HangSavings::Add(const WaitVerdict& verdict, HangDirectory directory,
                      std::function<void(HangDirectory*)> fill) {
  const std::string path = directory.path();
  auto run = [fill = std::move(fill), directory = std::move(directory),
              filled = filled_.get()]() mutable {
    fill(&directory);
    const uint64_t one = 1;
    (void)!::write(filled, &one, sizeof(one));
    return directory.problem();
  };
  savings_.push_back({verdict, path, std::async(std::launch::async, std::move(run))});
}

void HangSavings::TakeFilled() {
  uint64_t count = 0;
  (void)!::read(filled_.get(), &count, sizeof(count));
  for (auto saving = savings_.begin(); saving != savings_.end();) {
    // It writes to the eventfd some instructions before it is ready. Where it loses the processor
    // in between, the next call takes it.
    constexpr auto kNoTime = std::chrono::milliseconds(1);
    if (saving->problem.wait_for(kNoTime) != std::future_status::ready) {
      ++saving;
      continue;
    }
    saved_(saving->verdict, saving->directory, saving->problem.get());
    saving = savings_.erase(saving);
  }
}

void HangSavings::Finish() {
  for (Saving& saving : savings_) {
    saved_(saving.verdict, saving.directory, saving.problem.get());
  }
  savings_.clear();
}

}  // namespace ranktap::collector
