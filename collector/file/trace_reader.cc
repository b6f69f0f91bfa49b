#include "collector/file/trace_reader.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "collector/file/owned_file.h"
#include "proto/crc32c.h"

namespace ranktap::collector {
namespace {

constexpr size_t kScanBytes = 1u << 20;

template <typename Struct>
bool HeaderCrcAgrees(const Struct& header, size_t covered, uint32_t crc) {
  return proto::Crc32c(std::as_bytes(std::span(&header, 1)).first(covered)) == crc;
}

bool IsBlockHeader(const BlockHeader& header) {
  return header.magic == kBlockMagic &&
         HeaderCrcAgrees(header, offsetof(BlockHeader, header_crc), header.header_crc);
}

}  // namespace

Result<TraceReader> TraceReader::Open(const std::string& path) {
  Result<FileDescriptor> file = OpenRegularFile(path);
  return file ? Open(std::move(*file), path) : Result<TraceReader>(Failure{file.message()});
}

Result<TraceReader> TraceReader::Open(FileDescriptor file, const std::string& path) {
  TraceReader reader;
  reader.path_ = path;
  reader.file_ = std::move(file);
  struct stat status {};
  if (::fstat(reader.file_.get(), &status) != 0) {
    return SystemFailure(fmt::format("{}: could not stat", path), errno);
  }
  if (!S_ISREG(status.st_mode)) return Failure{fmt::format("{}: not a file", path)};
  reader.file_bytes_ = static_cast<uint64_t>(status.st_size);
  reader.blocks_end_ = reader.file_bytes_;
  reader.decompressor_ = std::make_unique<BlockDecompressor>();
  reader.ReadTrailer();
  const bool header_is_good = reader.ReadFileHeader();
  if (header_is_good && reader.header_.version > kTraceVersion) {
    return Failure{fmt::format("{}: trace format {} is newer than this ranktap; use a newer one",
                               path, reader.header_.version)};
  }
  if (header_is_good && reader.header_.required_features != 0) {
    return Failure{
        fmt::format("{}: needs features this ranktap does not know; use a newer one", path)};
  }
  if (!header_is_good) {
    const bool cut_off = reader.file_bytes_ < sizeof(FileHeader);
    const uint64_t first = cut_off ? reader.file_bytes_ : reader.FindBlock(0);
    if (cut_off ? !reader.StartsLikeATrace() : first >= reader.blocks_end_) {
      return Failure{
          fmt::format("{}: not a ranktap trace, nor a file of torch.profiler, nsys, PyTorch's "
                      "execution traces or memory profiler, or Chakra",
                      path)};
    }
    reader.damage_.push_back(
        {0, first, cut_off ? "cut off in the file header" : "damaged file header"});
    reader.offset_ = first;
    reader.skipped_ = true;
  }
  return reader;
}

bool TraceReader::ReadAt(uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t size = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    into = into.subspan(static_cast<size_t>(size));
    offset += static_cast<uint64_t>(size);
  }
  return true;
}

void TraceReader::ReadTrailer() {
  FileTrailer trailer{};
  if (file_bytes_ < sizeof(FileHeader) + sizeof(trailer)) return;
  const uint64_t at = file_bytes_ - sizeof(trailer);
  if (!ReadAt(at, std::as_writable_bytes(std::span(&trailer, 1)))) return;
  closed_ = trailer.magic == kTrailerMagic && trailer.file_bytes == file_bytes_ &&
            HeaderCrcAgrees(trailer, offsetof(FileTrailer, crc), trailer.crc);
  if (closed_) blocks_end_ = at;
}

bool TraceReader::ReadFileHeader() {
  if (!ReadAt(0, std::as_writable_bytes(std::span(&header_, 1)))) return false;
  offset_ = std::max<uint64_t>(sizeof(FileHeader), header_.header_bytes);
  return header_.magic == kTraceMagic &&
         HeaderCrcAgrees(header_, offsetof(FileHeader, header_crc), header_.header_crc);
}

bool TraceReader::StartsLikeATrace() {
  std::byte bytes[sizeof(kTraceMagic)];
  const size_t size = std::min<uint64_t>(file_bytes_, sizeof(bytes));
  return ReadAt(0, std::span(bytes).first(size)) && std::memcmp(bytes, &kTraceMagic, size) == 0;
}

std::string TraceReader::TryBlock(uint64_t offset, Block* block) {
  const uint64_t left = blocks_end_ - offset;
  if (left < sizeof(BlockHeader)) return "cut off in a block header";
  if (!ReadAt(offset, std::as_writable_bytes(std::span(&block->header, 1)))) {
    return "unreadable block header";
  }
  const BlockHeader& header = block->header;
  if (!IsBlockHeader(header)) return "damaged block header";
  if (header.raw_bytes > MaxRawBytes(header.type) || header.stored_bytes > header.raw_bytes) {
    return "impossible block size";
  }
  if (left - sizeof(BlockHeader) < header.stored_bytes) return "cut off in a block";
  stored_.resize(header.stored_bytes);
  if (!ReadAt(offset + sizeof(BlockHeader), stored_)) return "unreadable block";
  if (proto::Crc32c(stored_) != header.stored_crc) return "damaged block";
  if (raw_.size() < header.raw_bytes) raw_.resize(header.raw_bytes);
  const auto raw = std::span(raw_).first(header.raw_bytes);
  if (!decompressor_->Decompress(header.codec, stored_, raw)) return "block does not decompress";
  block->offset = offset;
  block->raw = raw;
  return {};
}

// The next byte that is not in a hole, which may be long: a file says that it has a TiB for
// nothing.
uint64_t TraceReader::DataFrom(uint64_t at) const {
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(at), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? blocks_end_ : at;
  return std::max(at, static_cast<uint64_t>(data));
}

uint64_t TraceReader::FindBlock(uint64_t from) {
  std::vector<std::byte> window(
      std::min<uint64_t>(kScanBytes, blocks_end_ - std::min(from, blocks_end_)));
  for (uint64_t at = DataFrom(from); at + sizeof(BlockHeader) <= blocks_end_; at = DataFrom(at)) {
    const size_t size = std::min<uint64_t>(window.size(), blocks_end_ - at);
    if (!ReadAt(at, std::span(window).first(size))) break;
    for (size_t i = 0; i + sizeof(BlockHeader) <= size; ++i) {
      const void* const hit =
          ::memmem(window.data() + i, size - i, &kBlockMagic, sizeof(kBlockMagic));
      if (hit == nullptr) break;
      i = static_cast<size_t>(static_cast<const std::byte*>(hit) - window.data());
      if (i + sizeof(BlockHeader) > size) break;
      BlockHeader header;
      std::memcpy(&header, window.data() + i, sizeof(header));
      if (IsBlockHeader(header)) return at + i;
    }
    if (size <= sizeof(BlockHeader)) break;
    at += size - sizeof(BlockHeader) + 1;  // a header may lie across the windows' border
  }
  return blocks_end_;
}

bool TraceReader::HeaderAt(uint64_t offset, Block* block) {
  if (offset + sizeof(BlockHeader) > blocks_end_) return false;
  block->offset = offset;
  if (!ReadAt(offset, std::as_writable_bytes(std::span(&block->header, 1)))) return false;
  return IsBlockHeader(block->header) && block->end() <= blocks_end_;
}

std::vector<Block> TraceReader::ListBlocks() {
  std::vector<Block> blocks;
  Block block;
  for (uint64_t at = offset_; HeaderAt(at, &block); at = block.end()) blocks.push_back(block);
  return blocks;
}

bool TraceReader::NextWhole(Block* block) {
  if (offset_ >= blocks_end_ || !TryBlock(offset_, block).empty()) return false;
  offset_ = block->end();
  next_sequence_ = block->header.sequence + 1;
  return true;
}

bool TraceReader::Next(Block* block) {
  while (offset_ < blocks_end_) {
    const uint64_t at = offset_;
    const std::string why = TryBlock(at, block);
    if (why.empty()) {
      offset_ = block->end();
      const bool after_damage = std::exchange(skipped_, false);
      if (block->header.sequence != next_sequence_ && !after_damage) {
        damage_.push_back({at, 0, "blocks are missing before this one"});
      }
      next_sequence_ = block->header.sequence + 1;
      return true;
    }
    offset_ = FindBlock(at + 1);
    damage_.push_back({at, offset_ - at, why});
    skipped_ = true;
  }
  return false;
}

}  // namespace ranktap::collector
