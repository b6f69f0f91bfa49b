// One process's trace as it grows: takes its blocks of frames, keeps the state that checkpoints are
// made of, and writes the file, which begins with the first event. Lives on the writer thread.
//
// It declares what cannot be written (disk full, I/O error) lost with its positions as soon as it
// can write again; the job never waits for a disk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collector/file/run_directory.h"
#include "collector/file/trace_state.h"
#include "collector/file/trace_tail.h"
#include "collector/file/trace_writer.h"
#include "collector/ingest/recovery/segment.h"
#include "collector/ingest/store/frame_block.h"

namespace ranktap::collector {

// The things with which all sessions of a collector write. Outlives them.
struct StoreContext {
  RunDirectory* directory;
  BlockCompressor* compressor;
  std::string collector_id;      // 16 bytes
  v1::ClockReading first_clock;  // from when the collector started
  bool keeps = false;            // files end with EndSegment, and old ones go
};

class SessionStore {
 public:
  SessionStore(StoreContext* context, const v1::Hello& hello, uint32_t pid);
  // Goes on where a file of an earlier collector ends: positions and names are those, the files
  // are new.
  void GoOnFrom(const TraceTail& tail);

  // Stores the block's frames, or declares its events lost. Control frames were checked by ingest
  // (Session::Accept), so all of them can be noted.
  void Store(const FrameBlock& block);
  // Reads what is left in the rings. True when the agent had said its last words there: then
  // nothing is missing but what death may have cut short.
  [[nodiscard]] bool Recover(const Segment& segment, bool process_is_dead);
  // Closes the file, if there is one. A session that comes back gets another.
  void Close(const v1::Ending& ending);

  // Closes the file where it has events; what comes then goes to another. Its info is infos()'s
  // last. False: there was nothing to close.
  [[nodiscard]] bool EndSegment();
  // The bytes of the file that is open.
  uint64_t open_bytes() const { return writer_ ? writer_->file_bytes() : 0; }
  bool has_open_file() const { return stage_ != Stage::kNoFile; }
  // These closed files are gone; `instead` holds what was in them, if anything does.
  void ForgetFiles(const std::vector<std::string>& files, const TraceInfo* instead);

  const TraceState& state() const { return state_; }
  // One for each file so far; none before the first event.
  const std::vector<TraceInfo>& infos() const { return infos_; }
  // True once after each change of what run.json says of this trace.
  bool TakeInfoChanged() { return std::exchange(info_changed_, false); }
  // About what it takes of memory.
  uint64_t MemoryBytes() const;
  // Every writer's counters agree with what is stored: nothing is left in the rings.
  bool AccountsAgree() const;

 private:
  struct LostPositions {
    uint64_t first = 0, events = 0;
  };
  // How far the beginning of the open file has come: each part can fail, and is tried again.
  enum class Stage { kNoFile, kHeader, kFirstCheckpoint, kReady };

  [[nodiscard]] bool CreateFile();
  // Writes what must precede the next block: the file's beginning, held frames, deferred losses,
  // and a checkpoint where names were lost.
  [[nodiscard]] bool WritePreamble();
  [[nodiscard]] bool WriteHeader();
  [[nodiscard]] bool WriteHeldFrames();
  // `extra`: positions or an ending, if any.
  [[nodiscard]] bool WriteCheckpoint(v1::Checkpoint extra);
  [[nodiscard]] bool WriteBlock(const FrameBlock& block);
  void Note(const FrameBlock& block);
  void DeferLosses(const FrameBlock& block);
  // The frame's positions, as events or as lost, are declared once there is a file to do it in.
  void DeferLoss(const proto::FrameView& frame);
  void Failed(const std::string& what);
  TraceName Name() const;
  void UpdateInfo();

  StoreContext* context_;
  TraceState state_;
  uint32_t pid_;
  uint32_t incarnation_ = 0;  // of this session: its n-th file
  Stage stage_ = Stage::kNoFile;
  std::unique_ptr<TraceWriter> writer_;
  RunDirectory::Part part_;
  std::vector<TraceInfo> infos_;
  uint64_t file_events_ = 0;
  bool info_changed_ = false;
  bool lost_names_ = false;
  // Gaps and the like from before the first event; bounded.
  FrameBlock held_;
  std::map<uint32_t, LostPositions> deferred_losses_;  // by writer, not yet in the file
  std::string problem_;
};

}  // namespace ranktap::collector
