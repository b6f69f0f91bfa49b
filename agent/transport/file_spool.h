// The file that takes the frames while there is no collector (proto/spool.h is its format). Capped,
// never mapped, never waited for: a file that cannot be written is left at its last whole frame.
// Runs on: the sender thread; at exit the exiting thread.  May not: write with write() (a reused
// descriptor number may be a socket of the program's; pwrite fails on those).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/core/own_descriptor.h"
#include "agent/transport/frame_sink.h"
#include "proto/frame.h"

namespace ranktap::agent {

class FileSpool final : public FrameSink {
 public:
  struct Setup {
    std::string directory;
    std::string session;       // 16 bytes
    uint64_t limit_bytes = 0;  // 0: no spool
  };
  explicit FileSpool(Setup setup);

  bool enabled() const { return setup_.limit_bytes > 0; }
  // There is a file of ours with frames in it. If the program has closed its descriptor, we open it
  // again by its name.
  bool open() { return file_.get() >= 0 || Reopen(); }

  // Goes on with the file there is, or makes the next one, which begins with `hello`. False: there
  // can be none now; the log says why.
  [[nodiscard]] bool Open(std::string_view hello);

  // FrameSink. Frames wait until Commit, which writes them: kNow, or kNever when none of them is in
  // the file (full, no space, taken away). A part of the cap is kept for the last words.
  void Put(const proto::FrameFields& fields, std::span<const std::byte> payload) override;
  [[nodiscard]] Stored Commit() override {
    return Write(Room::kEvents) ? Stored::kNow : Stored::kNever;
  }
  bool IsBehind() const override { return false; }

  // As Commit, up to the cap. False: none of it is in the file.
  [[nodiscard]] bool CommitLastWords() { return Write(Room::kLastWords); }
  // Forgets what is not committed.
  void Discard() { queued_.clear(); }

  // For the replay: whole frames from `offset` on, at most about `bytes`; empty at the end. Valid
  // until the next call.
  std::span<const std::byte> Read(uint64_t offset, size_t bytes);
  // The collector has it all.
  void Remove();

  void CloseInForkChild() { file_.CloseInForkChild(); }
  uint64_t bytes() const { return end_; }
  uint32_t files_made() const { return next_number_; }

 private:
  enum class Room { kEvents, kLastWords };

  bool MakeFile(int directory);
  bool Reopen();
  bool Write(Room room);
  bool WriteQueued(Room room);
  bool HasRoom(size_t bytes, Room room);

  Setup setup_;
  OwnDescriptor file_;
  std::string name_;  // in the directory
  std::string path_;
  uint32_t next_number_ = 0;
  uint64_t end_ = 0;  // of the last whole frame
  uint64_t looked_at_ = 0;
  bool told_ = false;  // the log has the reason why there is none
  std::string queued_;
  std::string read_;
};

}  // namespace ranktap::agent
