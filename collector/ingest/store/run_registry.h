// The run that a process belongs to. A collector of `ranktap run` has one; `ranktap collect` serves
// several jobs and users at once, each in a directory of its own below a root:
//
//   ROOT/UID/JOB-TIME/rank-00003.trace
//
// A job is what the launcher calls it (hello's rank.job). Processes without one are of one run as
// long as there are any, and kLinger beyond; those of spools are of a run of their own. Lives on
// the writer thread.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/file/run_directory.h"
#include "collector/file/trace_tail.h"
#include "collector/ingest/store/kept_segments.h"

namespace ranktap::collector {

// A run as the writer thread keeps it.
struct RunEntry {
  RunDirectory directory;
  RunInfo info;         // its traces: of sessions that are gone
  uid_t uid = 0;        // whose it is
  std::string name;     // of its directory, in its user's
  std::string kind;     // what goes on in it: "job-42", "run"; empty: of an earlier collector
  size_t sessions = 0;  // that are open
  uint64_t last_closed_ns = 0;         // CLOCK_MONOTONIC_RAW
  std::unique_ptr<KeptSegments> kept;  // none: all of it stays
};

class RunRegistry {
 public:
  // Everything is of this run.
  RunRegistry(RunDirectory directory, RunInfo info);
  // A root of many runs: closes what an earlier collector left open in it, and remembers which
  // process each file is of. `info`: what is the same in all of them. Fails when the root is not
  // ours to write, or another collector has it.
  static Result<RunRegistry> Open(const std::string& root, RunInfo info);

  struct Place {
    RunEntry* entry = nullptr;         // until CloseIdleRuns after its last session
    std::optional<TraceTail> earlier;  // where an earlier file of this process ends
  };
  // `from_spool`: the process has ended, maybe long ago; without a job it is of no run that goes
  // on.
  Result<Place> PlaceFor(const v1::Hello& hello, uid_t uid, bool from_spool);
  // A session of the entry has ended. `session`: its token, `file`: its last file, empty for none;
  // should the process come back, it goes on from there.
  void SessionEnded(RunEntry* entry, const std::string& session, const std::string& file);
  // Gives back the entries of runs that nobody is in, but for the latest few of each user; a run
  // whose job goes on is opened again. Their run.json is written; no pointer to them is kept.
  void CloseIdleRuns();

  const std::vector<std::unique_ptr<RunEntry>>& runs() const { return runs_; }
  // Files of an earlier collector that were open, now closed; what went wrong with others.
  const std::vector<std::string>& sealed() const { return sealed_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct EarlierFile {
    std::string run, file;  // names
    uint64_t created_realtime_ns = 0;
  };
  struct IdleRun {
    std::string run;
    uint64_t last_closed_ns = 0;
  };
  using Kind = std::pair<uid_t, std::string>;
  RunRegistry() = default;
  std::string PathOf(uid_t uid, const std::string& run = {}) const;
  Result<FileDescriptor> OpenUser(uid_t uid) const;
  void ScanUser(uid_t uid);
  void ScanRun(const FileDescriptor& user, uid_t uid, const std::string& run, uint64_t until_ns);
  void ScanFile(const FileDescriptor& directory, uid_t uid, const std::string& run,
                const std::string& file);
  Result<std::string> Seal(FileDescriptor file, int directory, const std::string& path);
  void Remember(uid_t uid, const std::string& session, EarlierFile file);
  Result<Place> PlaceOf(const EarlierFile& earlier, const std::string& session, uid_t uid);
  Result<RunEntry*> OpenRun(const v1::Hello& hello, uid_t uid, bool from_spool);
  Result<RunEntry*> MakeRun(const v1::Hello& hello, uid_t uid, const std::string& kind);
  Result<RunEntry*> ReopenRun(uid_t uid, const std::string& run);
  RunEntry* EntryIn(FileDescriptor directory, uid_t uid, const std::string& run);

  std::string root_;
  FileDescriptor lock_;  // the root's descriptor
  RunInfo common_;
  std::vector<std::unique_ptr<RunEntry>> runs_;
  std::map<Kind, RunEntry*> current_;
  std::map<Kind, IdleRun> idle_;  // the last kMostIdleKinds that have no entry
  std::map<std::pair<uid_t, std::string>, EarlierFile> earlier_;  // by user and session
  std::map<uid_t, std::deque<std::string>> remembered_;           // sessions of earlier_, in turn
  std::vector<std::string> sealed_, problems_;
};

}  // namespace ranktap::collector
