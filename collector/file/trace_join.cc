#include "collector/file/trace_join.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

#include "collector/file/owned_file.h"
#include "collector/file/trace_reader.h"
#include "collector/file/trace_writer.h"
#include "proto/crc32c.h"

namespace ranktap::collector {
namespace {

bool ReadStored(int file, const Block& block, std::vector<std::byte>* stored) {
  stored->resize(block.header.stored_bytes);
  size_t done = 0;
  while (done < stored->size()) {
    const auto at = static_cast<off_t>(block.offset + sizeof(BlockHeader) + done);
    const ssize_t size = ::pread(file, stored->data() + done, stored->size() - done, at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<size_t>(size);
  }
  return proto::Crc32c(*stored) == block.header.stored_crc;
}

}  // namespace

Result<uint64_t> JoinTraces(int directory, uid_t owner, const std::string& path,
                            const std::vector<std::string>& files, FileDescriptor into) {
  BlockCompressor compressor;
  TraceWriter writer(std::move(into), compressor);
  const auto unwritten = [&] {
    return SystemFailure(fmt::format("{}: could not be written", path), writer.error());
  };
  std::vector<std::byte> stored;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = path + "/" + files[i];
    Result<FileDescriptor> file = OpenOwnedFile(directory, files[i], owner, name);
    if (!file) return Failure{file.message()};
    const int descriptor = file->get();
    Result<TraceReader> reader = TraceReader::Open(std::move(*file), name);
    if (!reader) return Failure{reader.message()};
    const FileHeader& header = reader->header();
    if (i == 0 && !writer.WriteHeader(header.session, header.collector, header.created_realtime_ns))
      return unwritten();
    const std::vector<Block> blocks = reader->ListBlocks();
    size_t last = blocks.size();
    while (last > 0 && blocks[last - 1].header.type == BlockType::kIndex) --last;
    for (size_t b = 0; b < last; ++b) {
      const BlockType type = blocks[b].header.type;
      if (type == BlockType::kIndex) continue;
      // The next file begins with the same, and its process has not ended.
      const bool is_repeated =
          b + 1 == last && i + 1 < files.size() && type == BlockType::kCheckpoint;
      if (is_repeated) continue;
      if (!ReadStored(descriptor, blocks[b], &stored)) {
        return Failure{fmt::format("{}: a block is damaged at offset {}", name, blocks[b].offset)};
      }
      if (!writer.CopyBlock(blocks[b].header, stored)) return unwritten();
    }
  }
  if (!writer.Finish()) return unwritten();
  return writer.file_bytes();
}

}  // namespace ranktap::collector
