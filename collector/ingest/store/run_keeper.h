// What `--keep` does with the files of runs: ends segments, removes old ones, makes one file of a
// process's last ones at its end, and saves what is kept in a directory of its own (`ranktap
// dump`). Lives on the writer thread, but for the copying of a dump, which has a thread of its own:
// recording goes on meanwhile, and nothing that it reads is removed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collector/ingest/store/kept_segments.h"
#include "collector/ingest/store/run_registry.h"
#include "collector/ingest/store/session_store.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

struct DumpOrder {
  uint64_t last_ns = 0;  // 0: all that is kept
  std::string reason;
  // On a thread that must not wait.
  std::function<void(std::vector<v1::Dump>)> done;
};

struct KeptAmount {
  uint64_t since_ns = 0;  // CLOCK_MONOTONIC_RAW; 0: nothing is known
  uint64_t bytes = 0;
};

class RunKeeper {
 public:
  // Those that write into the run now.
  using SessionsOf = std::function<std::vector<SessionStore*>(const RunEntry*)>;
  using Post = std::function<void(std::function<void()>)>;
  // `stale`: whose run.json is behind; `post` hands a task to the writer thread. Both outlive this.
  RunKeeper(KeepLimits limits, SessionsOf sessions, Post post, std::set<RunEntry*>* stale)
      : limits_(limits), sessions_(std::move(sessions)), post_(std::move(post)), stale_(stale) {}

  bool keeps() const { return limits_.any(); }
  // A session of the run has come; files that an earlier collector left are kept like others.
  void Opened(RunEntry* entry);
  // It has stored a block with so many events.
  void Stored(RunEntry* entry, const SessionStore& session, uint64_t events);
  // What there is of it then.
  static KeptAmount AmountOf(const RunEntry& entry, const SessionStore& session);
  // Its file was closed.
  void Closed(RunEntry* entry, const SessionStore& session);
  // It is over: one file holds what is kept of it. Not while is_dumping().
  void Ended(RunEntry* entry, SessionStore* session);

  // Of each run, its directory dump-TIME within it. Refused while another one is made.
  void Dump(const std::set<RunEntry*>& entries, DumpOrder order);
  bool is_dumping() const { return is_dumping_; }

 private:
  void EndSegment(RunEntry* entry);
  void RemoveOld(RunEntry* entry);

  KeepLimits limits_;
  SessionsOf sessions_;
  Post post_;
  std::set<RunEntry*>* stale_;
  bool is_dumping_ = false;
  std::jthread dumper_;
};

}  // namespace ranktap::collector
