// Directories of hangs that are still being filled, each on a thread of its own: what others are
// asked for may take seconds, in which the watch looks at other jobs. Not thread-safe.
#pragma once

#include <functional>
#include <future>
#include <list>
#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/hang/hang_directory.h"
#include "collector/hang/wait_rules.h"

namespace ranktap::collector {

class HangSavings {
 public:
  // Which hang, its directory, and what of it could not be saved.
  using Saved = std::function<void(const WaitVerdict&, const std::string& directory,
                                   const std::string& problem)>;
  explicit HangSavings(Saved saved);

  void Add(const WaitVerdict& verdict, HangDirectory directory,
           std::function<void(HangDirectory*)> fill);
  // To be polled: readable once a directory has been filled since TakeFilled.
  int descriptor() const { return filled_.get(); }
  // Tells of those that are filled, or, by Finish, of all. To be called once a second as well: one
  // that has made the descriptor readable may not be taken by the first call.
  void TakeFilled();
  void Finish();

 private:
  struct Saving {
    WaitVerdict verdict;
    std::string directory;
    std::future<std::string> problem;
  };

  Saved saved_;
  FileDescriptor filled_;  // an eventfd
  std::list<Saving> savings_;
};

}  // namespace ranktap::collector
