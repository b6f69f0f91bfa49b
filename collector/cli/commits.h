// The commits of a git repository from a good one to a bad one, and a worktree of our own to run
// them in: the user's checkout stays as it is. All by git itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/cli/scratch_folder.h"
#include "collector/file/result.h"

namespace ranktap::collector {

struct Commit {
  std::string hash, subject;
  std::string short_hash() const { return hash.substr(0, 10); }
};

// The good one first, then the first parents up to the bad one, which is the last. Fails with what
// is wrong with the names or the place.
Result<std::vector<Commit>> CommitsBetween(const std::string& good, const std::string& bad);

// Whether this checkout holds changes that no commit has.
bool HasUncommittedChanges();

// A worktree that goes with the object.
class Worktree {
 public:
  Worktree() : scratch_("bisect") {}
  ~Worktree();
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

  // Files that no commit knows stay: what was built saves the next build. Empty, or what git said.
  std::string CheckOut(const std::string& hash);
  // Where a command runs: the folder that the user is in, of this worktree.
  const std::string& place() const { return place_; }

 private:
  std::string tree() const { return scratch_.path() + "/tree"; }

  ScratchFolder scratch_;
  std::string place_;  // empty: there is no worktree yet
};

}  // namespace ranktap::collector
