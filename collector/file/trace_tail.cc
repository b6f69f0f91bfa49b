#include "collector/file/trace_tail.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "collector/file/trace_reader.h"
#include "collector/file/trace_writer.h"

namespace ranktap::collector {
namespace {

// Three weeks of a rank that closes a block each 200 ms. Headers alone are read of them.
constexpr uint64_t kMostBlocks = 1u << 23;
// Behind the last index. A file from before there were several has one at its end alone.
constexpr uint64_t kMostUnlisted = 1u << 20;

// Decompressed; a collector writes a checkpoint every 16 MiB.
constexpr uint64_t kMostTailBytes = 256u << 20;

std::string SessionOf(const FileHeader& header) {
  return {reinterpret_cast<const char*>(header.session), sizeof(header.session)};
}

// The place to go on reading from.
struct LastCheckpoint {
  uint64_t offset = 0;  // 0: there is none
  uint64_t sequence = 0;
  uint64_t unlisted_from = 0;  // where the last index before it ends
};

// False: more blocks than any collector writes.
bool FindLastCheckpoint(TraceReader* reader, LastCheckpoint* last) {
  uint64_t unlisted_from = reader->offset(), count = 0;
  Block block;
  for (uint64_t at = reader->offset(); reader->HeaderAt(at, &block); at = block.end()) {
    if (++count >= kMostBlocks) return false;
    if (block.header.type == BlockType::kIndex) unlisted_from = block.end();
    if (block.header.type == BlockType::kCheckpoint) {
      *last = {block.offset, block.header.sequence, unlisted_from};
    }
  }
  return true;
}

// Those from `from` to `until`. False: too many.
bool ListHeaders(TraceReader* reader, uint64_t from, uint64_t until, BlockIndex* index) {
  Block block;
  for (uint64_t at = from; at < until && reader->HeaderAt(at, &block); at = block.end()) {
    if (index->blocks() >= kMostUnlisted) return false;
    index->Add(at, block.header);
  }
  return true;
}

// The block was noted, and belongs to what is there.
void Pass(const Block& block, TraceTail* tail) {
  if (block.header.type == BlockType::kIndex) {
    tail->index.Clear();
  } else {
    tail->index.Add(block.offset, block.header);
  }
  tail->end = block.end();
  tail->next_sequence = block.header.sequence + 1;
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

std::optional<FileHeader> ReadFileHeader(const FileDescriptor& file) {
  FileHeader header{};
  if (::pread(file.get(), &header, sizeof(header), 0) != sizeof(header)) return std::nullopt;
  const auto covered = std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, header_crc));
  if (header.magic != kTraceMagic || proto::Crc32c(covered) != header.header_crc) {
    return std::nullopt;
  }
  return header;
}

Result<TraceTail> ReadTail(const FileDescriptor& file, const std::string& path) {
  if (!ReadFileHeader(file))
    return Failure{fmt::format("{}: its header is damaged or cut off", path)};
  FileDescriptor copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return SystemFailure(fmt::format("{}: could not open", path), errno);
  Result<TraceReader> reader = TraceReader::Open(std::move(copy), path);
  if (!reader) return Failure{reader.message()};
  TraceTail tail;
  tail.path = path;
  tail.closed = reader->closed();
  tail.created_realtime_ns = reader->header().created_realtime_ns;
  tail.session = SessionOf(reader->header());
  LastCheckpoint last;
  if (!FindLastCheckpoint(&*reader, &last) ||
      !ListHeaders(&*reader, last.unlisted_from, last.offset, &tail.index)) {
    return Failure{fmt::format("{}: too many blocks to go on from", path)};
  }
  if (last.offset == 0) return Failure{fmt::format("{}: no checkpoint to go on from", path)};
  tail.end = last.offset;
  reader->Seek(tail.end, last.sequence);
  Block block;
  uint64_t raw_bytes = 0;
  while (reader->NextWhole(&block) && block.offset == tail.end && NoteBlock(block, &tail)) {
    raw_bytes += block.header.raw_bytes;
    if (raw_bytes > kMostTailBytes) {
      return Failure{fmt::format("{}: too much behind its last checkpoint to go on from", path)};
    }
    Pass(block, &tail);
  }
  if (tail.end == last.offset) {
    return Failure{fmt::format("{}: its last checkpoint is damaged", path)};
  }
  return tail;
}

Result<TraceTail> TailOfNothing(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return SystemFailure(fmt::format("{}: could not stat", path), errno);
  const std::optional<FileHeader> header = ReadFileHeader(file);
  BlockHeader block{};
  const ssize_t size = ::pread(file.get(), &block, sizeof(block), sizeof(FileHeader));
  const auto bytes = static_cast<uint64_t>(status.st_size);
  const bool cut_in_header = bytes < sizeof(FileHeader);
  const bool cut_in_block =
      header && (bytes < sizeof(FileHeader) + sizeof(block) ||
                 (size == sizeof(block) && block.magic == kBlockMagic &&
                  bytes - sizeof(FileHeader) - sizeof(block) < block.stored_bytes));
  if (!cut_in_header && !cut_in_block)
    return Failure{fmt::format("{}: damaged, and left as it is", path)};
  TraceTail tail;
  tail.path = path;
  tail.session = header ? SessionOf(*header) : std::string(sizeof(FileHeader::session), '\0');
  tail.created_realtime_ns = header ? header->created_realtime_ns
                                    : static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000;
  tail.state.hello().set_session(tail.session);
  return tail;
}

Result<std::string> SealTrace(FileDescriptor file, int directory, const TraceTail& tail,
                              const v1::Ending& ending) {
  if (::ftruncate(file.get(), static_cast<off_t>(tail.end)) != 0 ||
      ::lseek(file.get(), static_cast<off_t>(tail.end), SEEK_SET) < 0) {
    return SystemFailure(fmt::format("{}: could not cut off its torn end", tail.path), errno);
  }
  BlockCompressor compressor;
  TraceWriter writer(std::move(file), compressor, tail.end, tail.next_sequence, tail.index);
  const auto* const session = reinterpret_cast<const uint8_t*>(tail.session.data());
  constexpr uint8_t kNoCollector[sizeof(FileHeader::collector)] = {};
  if (tail.end == 0 && !writer.WriteHeader(std::span(session, tail.session.size()), kNoCollector,
                                           tail.created_realtime_ns)) {
    return SystemFailure(fmt::format("{}: could not close it", tail.path), writer.error());
  }
  v1::Checkpoint last;
  *last.mutable_ending() = ending;
  last.set_incarnation(tail.incarnation);
  if (!writer.WriteCheckpoint(tail.state.EncodeCheckpoint(std::move(last))) || !writer.Finish()) {
    return SystemFailure(fmt::format("{}: could not close it", tail.path), writer.error());
  }
  constexpr std::string_view kPart = ".part";
  if (!tail.path.ends_with(kPart)) return tail.path;
  const std::string name = tail.path.substr(0, tail.path.size() - kPart.size());
  const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  // Readers take a .part too, so that a name that is taken does no harm.
  if (::syscall(SYS_renameat2, directory, last_part(tail.path).c_str(), directory,
                last_part(name).c_str(), 1 /* RENAME_NOREPLACE */) != 0) {
    return tail.path;
  }
  return name;
}

}  // namespace ranktap::collector
