// The writer thread: everything that touches a disk happens there, in the order of the calls here.
// Calls come from the server's thread and never wait; replies are handed to a function that runs on
// the writer thread and only passes them on.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "collector/ingest/net/peer.h"
#include "collector/ingest/recovery/segment.h"
#include "collector/ingest/store/frame_block.h"
#include "collector/ingest/store/run_keeper.h"
#include "collector/ingest/store/run_registry.h"
#include "collector/ingest/store/session_store.h"

namespace ranktap::collector {

using SessionId = uint64_t;  // numbers sessions within one collector

// The frames up to `frames` of that connection are written (or declared lost).
struct StoredReply {
  SessionId session = 0;
  uint64_t connection = 0;
  uint64_t frames = 0;
  uint64_t memory = 0;  // what the store holds of the session, in bytes
  KeptAmount kept;      // of the session
};
// The session's file will lie in this directory.
struct OpenedReply {
  SessionId session = 0;
  std::string run;
};
// The position at which each writer of a session goes on.
struct PositionsReply {
  SessionId session = 0;
  uint64_t connection = 0;
  std::vector<std::pair<uint32_t, uint64_t>> next_events;
};
// No file can be made for the session: `why` goes to the agent.
struct RefusedReply {
  SessionId session = 0;
  std::string why;
};
// The session's file is closed.
struct ClosedReply {
  SessionId session = 0;
};
using StoreReply =
    std::variant<StoredReply, OpenedReply, PositionsReply, ClosedReply, RefusedReply>;

class TraceStore {
 public:
  using Reply = std::function<void(StoreReply)>;

  // Starts the thread.
  TraceStore(RunRegistry registry, std::string collector_id, Reply reply, KeepLimits keep = {});
  // Waits until everything is written.
  ~TraceStore();

  void Open(SessionId session, const v1::Hello& hello, uint32_t pid, const PeerCredentials& peer);
  void Store(SessionId session, uint64_t connection, uint64_t frames, FrameBlock block);
  void AskPositions(SessionId session, uint64_t connection);
  // Reads the rings (unless nothing can be left in them) and closes the file.
  void Close(SessionId session, std::shared_ptr<const Segment> segment, bool process_is_dead,
             v1::Ending ending);
  void Forget(SessionId session);
  // What is kept of the sessions' runs, with all blocks that came before this call.
  void Dump(const std::vector<SessionId>& sessions, DumpOrder order);

  // Ends the thread when everything is written, writes each run.json a last time and returns what
  // the first one says. `finish` adds what is known only now (exit status, end). Not from the
  // server's thread.
  RunInfo Finish(const std::function<void(RunInfo*)>& finish);

  // Calls `done` when the thread has come to it: that it still moves.
  void Ping(std::function<void()> done) { Post(std::move(done)); }

  // Bytes of blocks that wait to be written.
  uint64_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }
  // The first thing that went wrong with run.json; after Finish.
  const std::string& problem() const { return problem_; }

 private:
  using Job = std::function<void()>;
  void Post(Job job);
  void Run();
  // A session, its run, and what it writes with.
  struct StoredSession {
    RunEntry* entry;
    StoreContext context;
    std::unique_ptr<SessionStore> store;
  };
  void OpenNow(SessionId session, const v1::Hello& hello, uint32_t pid,
               const PeerCredentials& peer);
  void ForgetNow(SessionId session);
  RunInfo InfoOf(const RunEntry& entry) const;
  void WriteInfo(RunEntry* entry);
  void WriteStaleInfos();
  StoredSession* Find(SessionId session);
  // Ends the session alone when there is no memory for what it brings.
  void WithinMemory(SessionId session, const std::function<void(StoredSession*)>& act);
  std::unique_ptr<StoredSession> Take(SessionId session);

  RunRegistry registry_;
  BlockCompressor compressor_;
  std::string collector_id_;
  v1::ClockReading first_clock_;
  Reply reply_;
  std::map<SessionId, std::unique_ptr<StoredSession>> sessions_;
  std::string problem_;
  std::vector<SessionId> ended_during_dump_;

  // Runs whose run.json is behind. All of it is written anew, so that no more than a twentieth of
  // this thread's time goes into it: a run of 2,000 short processes spent minutes there.
  std::set<RunEntry*> stale_;
  std::chrono::steady_clock::time_point next_info_{};

  std::atomic<uint64_t> queued_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool finished_ = false;
  RunKeeper keeper_;
  std::thread thread_;
};

}  // namespace ranktap::collector
