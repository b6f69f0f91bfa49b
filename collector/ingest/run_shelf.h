// Which run a process belongs to. A collector of `ranktap run` has one; `ranktap collect` serves
// several jobs and users at once, each in a directory of its own below a root:
//
//   ROOT/UID/JOB-TIME/rank-00003.trace
//
// A job is what the launcher calls it (hello's rank.job). Processes without one are of one run as
// long as there are any, and kLinger beyond; those of spools are of a run of their own. Lives on
// the writer thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/file/run_directory.h"
#include "collector/file/trace_tail.h"

namespace ranktap::collector {

// A run as the writer thread keeps it.
struct RunBook {
  RunDirectory directory;
  RunInfo info;                 // its traces: of sessions that are gone
  size_t sessions = 0;          // that are open
  uint64_t last_closed_ns = 0;  // CLOCK_MONOTONIC_RAW
};

class RunShelf {
 public:
  // Everything is of this run.
  RunShelf(RunDirectory directory, RunInfo info);
  // A root of many runs: closes what an earlier collector left open in it, and remembers which
  // process each file is of. `info`: what is the same in all of them. Fails when the root is not
  // ours to write, or another collector has it.
  static Result<RunShelf> Open(const std::string& root, RunInfo info);

  struct Place {
    RunBook* book = nullptr;           // lives as long as the shelf
    std::optional<TraceTail> earlier;  // where an earlier file of this process ends
  };
  // `from_spool`: the process has ended, maybe long ago; without a job it is of no run that goes
  // on.
  Result<Place> PlaceFor(const v1::Hello& hello, uid_t uid, bool from_spool);
  // A session of the book has ended.
  void Leave(RunBook* book);

  const std::vector<std::unique_ptr<RunBook>>& books() const { return books_; }
  // Files of an earlier collector that were open, now closed; what went wrong with others.
  const std::vector<std::string>& sealed() const { return sealed_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct EarlierFile {
    std::string path;
    uint64_t created_realtime_ns = 0;
  };
  RunShelf() = default;
  void ScanRun(const std::string& path, uint32_t uid);
  void ScanFile(const std::string& path, uint32_t uid);
  Result<RunBook*> OpenBook(const v1::Hello& hello, uid_t uid, bool from_spool);
  Result<RunBook*> ReopenBook(const std::string& path, uid_t uid);

  std::string root_;
  FileDescriptor lock_;
  RunInfo common_;
  std::vector<std::unique_ptr<RunBook>> books_;
  std::map<std::string, RunBook*> current_;                       // by user and job
  std::map<std::pair<uid_t, std::string>, EarlierFile> earlier_;  // by user and session
  std::vector<std::string> sealed_, problems_;
};

}  // namespace ranktap::collector
