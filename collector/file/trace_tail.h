// The end of a trace file: what a collector needs to go on with a process whose earlier collector
// is gone, and to close what that one left open. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "collector/file/block_index.h"
#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"
#include "collector/file/trace_format.h"
#include "collector/file/trace_state.h"

namespace ranktap::collector {

struct TraceTail {
  std::string path;
  std::string session;  // 16 bytes
  uint64_t created_realtime_ns = 0;
  // As of the last good block. Positions are those of events that are in the file.
  TraceState state;
  uint32_t incarnation = 0;  // of the session: its n-th file
  bool closed = false;
  // The end of the last good block, and what comes next there.
  uint64_t end = 0;
  uint64_t next_sequence = 0;
  BlockIndex index;  // of the blocks since the last index before `end`
};

// The header of an open file, where it is whole.
std::optional<FileHeader> ReadFileHeader(const FileDescriptor& file);

// Reads headers up to the last checkpoint and everything behind it. Fails when there is no
// checkpoint that can be read. `file` stays the caller's; `path` is for messages and SealTrace.
Result<TraceTail> ReadTail(const FileDescriptor& file, const std::string& path);

// For a file that was cut off before its first block was whole: nothing that is in it was ever
// acked. The tail of a file without events.
Result<TraceTail> TailOfNothing(const FileDescriptor& file, const std::string& path);

// Cuts a torn end off an open file, writes a checkpoint with `ending`, index and trailer, and gives
// it its final name in `directory` where that is free. Returns the file's path. Nobody else may be
// writing it. `file`: open for reading and writing.
Result<std::string> SealTrace(FileDescriptor file, int directory, const TraceTail& tail,
                              const v1::Ending& ending);

}  // namespace ranktap::collector
