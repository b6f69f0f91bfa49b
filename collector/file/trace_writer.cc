#include "collector/file/trace_writer.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proto/crc32c.h"

namespace ranktap::collector {
namespace {

// The most that one more block adds to the index: 7 numbers, their tags, the entry's own.
constexpr uint64_t kIndexEntryBytes = 64;
// With more than this free nothing is set aside: a file of 60 blocks of 4 KB took 35 ms with it and
// 0.4 ms without on ext4, which otherwise decides late where bytes go.
constexpr uint64_t kPlentyBytes = 1u << 30;
// Otherwise as much as the file holds at once, up to this.
constexpr uint64_t kMaxSetAsideBytes = 1u << 20;

template <typename Struct>
std::span<const std::byte> BytesOf(const Struct& value) {
  return std::as_bytes(std::span(&value, 1));
}

// 0 or errno. Continues after short writes and signals.
int WriteAll(int fd, std::span<const std::byte> head, std::span<const std::byte> body) {
  while (!head.empty() || !body.empty()) {
    const iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                            {const_cast<std::byte*>(body.data()), body.size()}};
    const ssize_t written = ::writev(fd, parts, 2);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return EIO;
    const size_t of_head = std::min(head.size(), static_cast<size_t>(written));
    head = head.subspan(of_head);
    body = body.subspan(static_cast<size_t>(written) - of_head);
  }
  return 0;
}

bool PlentyIsFree(int fd) {
  struct statvfs info;
  return ::fstatvfs(fd, &info) == 0 && uint64_t{info.f_bavail} * info.f_frsize > kPlentyBytes;
}

}  // namespace

TraceWriter::TraceWriter(FileDescriptor file, BlockCompressor& compressor)
    : file_(std::move(file)), compressor_(&compressor) {}

TraceWriter::TraceWriter(FileDescriptor file, BlockCompressor& compressor, uint64_t offset,
                         uint64_t sequence, BlockIndex index)
    : file_(std::move(file)),
      compressor_(&compressor),
      offset_(offset),
      sequence_(sequence),
      index_(std::move(index)) {}

bool TraceWriter::WriteHeader(std::span<const uint8_t> session, std::span<const uint8_t> collector,
                              uint64_t created_realtime_ns) {
  FileHeader header{};
  header.magic = kTraceMagic;
  header.version = kTraceVersion;
  header.header_bytes = sizeof(header);
  std::copy_n(session.begin(), std::min(session.size(), sizeof(header.session)), header.session);
  std::copy_n(collector.begin(), std::min(collector.size(), sizeof(header.collector)),
              header.collector);
  header.created_realtime_ns = created_realtime_ns;
  header.header_crc = proto::Crc32c(BytesOf(header).first(offsetof(FileHeader, header_crc)));
  return Append(BytesOf(header), {});
}

bool TraceWriter::WriteFrames(std::span<const std::byte> frames, const FramesSummary& summary) {
  if (!WriteBlock(BlockType::kFrames, frames, summary)) return false;
  since_checkpoint_ += frames.size();
  return true;
}

bool TraceWriter::CopyBlock(BlockHeader header, std::span<const std::byte> stored) {
  const uint64_t offset = offset_;
  header.sequence = sequence_;
  header.header_crc = proto::Crc32c(BytesOf(header).first(offsetof(BlockHeader, header_crc)));
  if (!Append(BytesOf(header), stored)) return false;
  ++sequence_;
  index_.Add(offset, header);
  return index_.blocks() < kBlocksOfAnIndex || WriteIndex();
}

bool TraceWriter::WriteCheckpoint(std::string_view checkpoint) {
  if (checkpoint.size() > kMaxCheckpointBytes) {
    error_ = EFBIG;
    return false;
  }
  if (!WriteBlock(BlockType::kCheckpoint, std::as_bytes(std::span(checkpoint)), {})) return false;
  since_checkpoint_ = 0;
  return true;
}

bool TraceWriter::Finish() {
  KeepRoom(0);
  const uint64_t index_offset = offset_;
  if (!WriteIndex()) return false;
  FileTrailer trailer{};
  trailer.magic = kTrailerMagic;
  trailer.index_offset = index_offset;
  trailer.file_bytes = offset_ + sizeof(trailer);
  trailer.crc = proto::Crc32c(BytesOf(trailer).first(offsetof(FileTrailer, crc)));
  if (!Append(BytesOf(trailer), {})) return false;
  if (set_aside_ > offset_) (void)::ftruncate(file_.get(), static_cast<off_t>(offset_));
  return true;
}

bool TraceWriter::HasRoom(uint64_t block_bytes) {
  if (room_ == 0) return true;
  const uint64_t end = offset_ + block_bytes + room_ + (index_.blocks() + 2) * kIndexEntryBytes;
  if (end <= set_aside_ || PlentyIsFree(file_.get())) return true;
  return SetAside(end + std::min(offset_, kMaxSetAsideBytes)) || SetAside(end);
}

bool TraceWriter::SetAside(uint64_t end) {
  int result = 0;
  do {
    result = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                         static_cast<off_t>(end - offset_));
  } while (result != 0 && errno == EINTR);
  error_ = result == 0 ? 0 : errno;
  if (error_ == ENOSPC || error_ == EDQUOT || error_ == EFBIG) return false;
  set_aside_ = end;
  return true;
}

bool TraceWriter::WriteBlock(BlockType type, std::span<const std::byte> raw,
                             const FramesSummary& summary) {
  const uint64_t offset = offset_;
  BlockHeader header{};
  if (!AppendBlock(type, raw, summary, &header)) return false;
  index_.Add(offset, header);
  // The block is there. An index that cannot be written is due again after the next one.
  if (index_.blocks() >= kBlocksOfAnIndex) (void)WriteIndex();
  return true;
}

bool TraceWriter::WriteIndex() {
  BlockHeader header{};
  const auto bytes = std::as_bytes(std::span(index_.bytes()));
  if (!AppendBlock(BlockType::kIndex, bytes, {}, &header)) return false;
  index_.Clear();
  return true;
}

bool TraceWriter::AppendBlock(BlockType type, std::span<const std::byte> raw,
                              const FramesSummary& summary, BlockHeader* into) {
  const BlockCompressor::Stored stored = compressor_->Compress(raw);
  BlockHeader& header = *into;
  header.magic = kBlockMagic;
  header.type = type;
  header.codec = stored.codec;
  header.stored_bytes = static_cast<uint32_t>(stored.bytes.size());
  header.raw_bytes = static_cast<uint32_t>(raw.size());
  header.sequence = sequence_;
  header.events = summary.events;
  header.frames = summary.frames;
  header.first_received_ns = summary.first_received_ns;
  header.last_received_ns = summary.last_received_ns;
  header.stored_crc = proto::Crc32c(stored.bytes);
  header.header_crc = proto::Crc32c(BytesOf(header).first(offsetof(BlockHeader, header_crc)));
  if (!HasRoom(sizeof(header) + stored.bytes.size())) return false;
  if (!Append(BytesOf(header), stored.bytes)) return false;
  ++sequence_;
  return true;
}

bool TraceWriter::Append(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (broken_) return false;
  error_ = WriteAll(file_.get(), head, body);
  if (error_ == 0) {
    offset_ += head.size() + body.size();
    return true;
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(offset_)) != 0 ||
      ::lseek(file_.get(), static_cast<off_t>(offset_), SEEK_SET) < 0) {
    broken_ = true;
  }
  set_aside_ = offset_;  // cutting off gives it back
  return false;
}

}  // namespace ranktap::collector
