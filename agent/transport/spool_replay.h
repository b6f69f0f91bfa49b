// The events that only the spool has, and their way to the next collector: the frames of the file
// without what that collector has stored, then an account of what nobody has any more. Runs on: the
// sender thread; at exit the exiting thread.  May not: be used from two threads.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "agent/transport/file_spool.h"
#include "agent/transport/frame_sink.h"
#include "agent/transport/messages.h"

namespace ranktap::agent {

class SpoolReplay {
 public:
  // Before a sink that is a spool has a batch, and after it has stored it.
  void NoteBatch(uint32_t writer, uint64_t first_event);
  void NoteStored(uint32_t writer, uint64_t next_event);
  // There are events that no collector has acknowledged and the rings have no more.
  bool HasEvents() const { return !spooled_.empty(); }

  // The latest collector takes in what a process leaves in its spool at its end.
  bool spools_are_taken() const { return spools_are_taken_; }

  // A collector has welcomed us: the replay to it begins.
  void Begin(const Welcome& welcome);
  // Puts frames of the spool until `sink` is behind. True: all are put; DeclareGone is called.
  bool Run(FileSpool& spool, FrameSink& sink);
  // The collector has the whole replay when it acknowledges this frame.
  void Await(uint64_t frame) { last_frame_ = frame; }
  // The collector is gone, whatever it had of the replay.
  void Interrupt() { last_frame_ = 0; }
  // True once: the collector has it all, and the spool can go.
  bool Acknowledge(uint64_t frames);

  // Declares lost, to the sink, the events that were given back for the sake of a spool and that no
  // spool has any more. Again for each sink, until a collector has acknowledged it.
  void DeclareGone(FrameSink& sink) const;

 private:
  void PutUnlessStored(const proto::FrameView& frame, FrameSink& sink);

  bool spools_are_taken_ = false;
  uint64_t offset_ = 0;
  uint64_t last_frame_ = 0;                        // 0: none is awaited
  std::unordered_map<uint32_t, uint64_t> stored_;  // Welcome.positions, and what was replayed
  // By writer, what no collector has acknowledged and the rings have no more: only the spool has
  // it, or nobody.
  struct Spooled {
    uint64_t first, next;
  };
  std::unordered_map<uint32_t, Spooled> spooled_;
};

}  // namespace ranktap::agent
