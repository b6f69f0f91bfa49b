// The writer thread: everything that touches a disk happens there, in the order of the calls here.
// Calls come from the server's thread and never wait; replies are handed to a function that runs on
// the writer thread and only passes them on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "collector/ingest/frame_block.h"
#include "collector/ingest/segment.h"
#include "collector/ingest/session_store.h"
#include "collector/trace/run_directory.h"

namespace ranktap::collector {

using SessionId = uint64_t;  // numbers sessions within one collector

// The frames up to `frames` of that connection are written (or declared lost).
struct StoredReply {
  SessionId session = 0;
  uint64_t connection = 0;
  uint64_t frames = 0;
  FrameBlock block;  // the buffer, for reuse
};
// Where each writer of a session goes on.
struct PositionsReply {
  SessionId session = 0;
  uint64_t connection = 0;
  std::vector<std::pair<uint32_t, uint64_t>> next_events;
};
// The session's file is closed.
struct ClosedReply {
  SessionId session = 0;
};
using StoreReply = std::variant<StoredReply, PositionsReply, ClosedReply>;

class TraceStore {
 public:
  using Reply = std::function<void(StoreReply)>;

  // Starts the thread. `info` is what run.json says but for its traces.
  TraceStore(RunDirectory directory, RunInfo info, std::string collector_id, Reply reply);
  // Waits until everything is written.
  ~TraceStore();

  void Open(SessionId session, const v1::Hello& hello, uint32_t pid);
  void Store(SessionId session, uint64_t connection, uint64_t frames, FrameBlock block);
  void AskPositions(SessionId session, uint64_t connection);
  // Reads the rings (unless nothing can be left in them) and closes the file.
  void Close(SessionId session, std::shared_ptr<const Segment> segment, bool process_is_dead,
             v1::Ending ending);
  void Forget(SessionId session);

  // Ends the thread when everything is written, writes run.json a last time and returns what it
  // says. `finish` adds what is known only now (exit status, end). Not from the server's thread.
  RunInfo Finish(const std::function<void(RunInfo*)>& finish);

  // Bytes of blocks that wait to be written.
  uint64_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }
  // The first thing that went wrong with run.json; after Finish.
  const std::string& problem() const { return problem_; }

 private:
  using Job = std::function<void()>;
  void Post(Job job);
  void Run();
  void WriteInfo();
  SessionStore* Find(SessionId session);

  RunDirectory directory_;
  RunInfo info_;
  BlockCompressor compressor_;
  StoreContext context_;
  Reply reply_;
  std::map<SessionId, std::unique_ptr<SessionStore>> sessions_;
  std::vector<TraceInfo> forgotten_;  // of sessions that are gone
  std::string problem_;

  std::atomic<uint64_t> queued_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace ranktap::collector
