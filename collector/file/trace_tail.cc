#include "collector/file/trace_tail.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "collector/file/trace_reader.h"
#include "collector/file/trace_writer.h"

namespace ranktap::collector {
namespace {

void AddEntry(const Block& block, v1::Index* index) {
  v1::BlockEntry& entry = *index->add_blocks();
  entry.set_offset(block.offset);
  entry.set_type(static_cast<uint32_t>(block.header.type));
  entry.set_events(block.header.events);
  entry.set_stored_bytes(block.header.stored_bytes);
  entry.set_raw_bytes(block.header.raw_bytes);
  entry.set_first_received_ns(block.header.first_received_ns);
  entry.set_last_received_ns(block.header.last_received_ns);
}

uint64_t EndOf(const Block& block) {
  return block.offset + sizeof(BlockHeader) + block.header.stored_bytes;
}

bool NoteFrames(std::span<const std::byte> bytes, TraceState* state) {
  while (!bytes.empty()) {
    const proto::FrameView frame = proto::DecodeFrame(bytes);
    if (frame.status != proto::FrameStatus::kComplete || !state->Note(frame)) return false;
    bytes = bytes.subspan(frame.consumed);
  }
  return true;
}

// False: nothing from this block on counts.
bool NoteBlock(const Block& block, TraceTail* tail) {
  switch (block.header.type) {
    case BlockType::kCheckpoint: {
      v1::Checkpoint checkpoint;
      std::string dictionary;
      if (!ParseCheckpoint(block.raw, &checkpoint, &dictionary)) return false;
      tail->incarnation = checkpoint.incarnation();
      return tail->state.Restore(block.raw);
    }
    case BlockType::kFrames:
      return NoteFrames(block.raw, &tail->state);
    default:
      return true;
  }
}

}  // namespace

Result<TraceTail> ReadTail(const std::string& path) {
  Result<TraceReader> reader = TraceReader::Open(path);
  if (!reader) return Failure{reader.message()};
  TraceTail tail;
  tail.path = path;
  tail.closed = reader->closed();
  tail.created_realtime_ns = reader->header().created_realtime_ns;
  tail.session.assign(reinterpret_cast<const char*>(reader->header().session),
                      sizeof(reader->header().session));
  const std::vector<Block> blocks = reader->ListBlocks();
  size_t first = blocks.size();
  while (first > 0 && blocks[first - 1].header.type != BlockType::kCheckpoint) --first;
  if (first == 0) return Failure{fmt::format("{}: no checkpoint to go on from", path)};
  --first;
  for (size_t i = 0; i < first; ++i) AddEntry(blocks[i], &tail.index);
  tail.end = blocks[first].offset;
  reader->Seek(tail.end, blocks[first].header.sequence);
  Block block;
  while (reader->Next(&block) && block.offset == tail.end && NoteBlock(block, &tail)) {
    if (block.header.type == BlockType::kIndex) break;
    AddEntry(block, &tail.index);
    tail.end = EndOf(block);
  }
  if (tail.end == blocks[first].offset) {
    return Failure{fmt::format("{}: its last checkpoint is damaged", path)};
  }
  return tail;
}

Result<std::string> SealTrace(const TraceTail& tail, const v1::Ending& ending) {
  FileDescriptor file(::open(tail.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return SystemFailure(fmt::format("{}: could not open", tail.path), errno);
  if (::ftruncate(file.get(), static_cast<off_t>(tail.end)) != 0 ||
      ::lseek(file.get(), static_cast<off_t>(tail.end), SEEK_SET) < 0) {
    return SystemFailure(fmt::format("{}: could not cut off its torn end", tail.path), errno);
  }
  BlockCompressor compressor;
  TraceWriter writer(std::move(file), compressor, tail.end, tail.index);
  v1::Checkpoint last;
  *last.mutable_ending() = ending;
  last.set_incarnation(tail.incarnation);
  if (!writer.WriteCheckpoint(tail.state.EncodeCheckpoint(std::move(last))) || !writer.Finish()) {
    return SystemFailure(fmt::format("{}: could not close it", tail.path), writer.error());
  }
  constexpr std::string_view kPart = ".part";
  if (!tail.path.ends_with(kPart)) return tail.path;
  const std::string name = tail.path.substr(0, tail.path.size() - kPart.size());
  // Readers take a .part too, so that a name that is taken does no harm.
  if (::syscall(SYS_renameat2, AT_FDCWD, tail.path.c_str(), AT_FDCWD, name.c_str(),
                1 /* RENAME_NOREPLACE */) != 0) {
    return tail.path;
  }
  return name;
}

}  // namespace ranktap::collector
