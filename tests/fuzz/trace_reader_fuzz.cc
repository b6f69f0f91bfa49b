// Readers over any file: edits of frames inside good blocks, and of the file's own bytes.
#include <sys/mman.h>
#include <unistd.h>

#include "collector/file/trace_state.h"
#include "collector/file/trace_tail.h"
#include "collector/file/trace_writer.h"
#include "collector/trace/load/trace_check.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/sample_frames.h"

using namespace ranktap;
using namespace ranktap::collector;

namespace {

// A file of one checkpoint and one block of `frames`, in memory.
void WriteTrace(int fd, const std::string& frames, uint32_t count, uint64_t events) {
  static BlockCompressor compressor;
  TraceState state;
  state.hello().set_session("0123456789abcdef");
  TraceWriter writer(FileDescriptor(::dup(fd)), compressor);
  const std::vector<uint8_t> id(16, 7);
  FramesSummary summary{.frames = count, .events = events};
  const bool ok = writer.WriteHeader(id, id, 1) &&
                  writer.WriteCheckpoint(state.EncodeCheckpoint({})) &&
                  writer.WriteFrames(std::as_bytes(std::span(frames)), summary) && writer.Finish();
  fuzz::Require(ok);
}

void RepairBlockHeaders(std::span<std::byte> file) {
  for (size_t at = 0; at + sizeof(BlockHeader) <= file.size(); ++at) {
    BlockHeader header;
    std::memcpy(&header, file.data() + at, sizeof(header));
    if (header.magic != kBlockMagic) continue;
    header.header_crc = proto::Crc32c(
        std::as_bytes(std::span(&header, 1)).first(offsetof(BlockHeader, header_crc)));
    std::memcpy(file.data() + at, &header, sizeof(header));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = ::memfd_create("trace", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  static const std::string samples[] = {fuzz::DictionaryFrame(), fuzz::ClockFrame(),
                                        fuzz::EventFrame(0), fuzz::EventFrame(120)};
  (void)!::ftruncate(fd, 0);
  (void)::lseek(fd, 0, SEEK_SET);
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  std::string frames;
  for (std::string frame : samples) {
    if ((mode & 1) != 0 && !input.empty()) {
      const size_t at = input.Take<uint16_t>() % frame.size();
      frame[at] = static_cast<char>(input.Take<uint8_t>());
      fuzz::RepairFrame(std::as_writable_bytes(std::span(frame)));
    }
    frames += frame;
  }
  WriteTrace(fd, frames, 4, 240);
  if ((mode & 2) != 0) {
    std::string file(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
    (void)!::pread(fd, file.data(), file.size(), 0);
    const auto bytes = std::as_writable_bytes(std::span(file));
    fuzz::Edit(&input, bytes);
    if ((mode & 4) != 0) RepairBlockHeaders(bytes);
    (void)!::pwrite(fd, file.data(), file.size(), 0);
    if ((mode & 8) != 0) (void)!::ftruncate(fd, input.Take<uint16_t>() % file.size());
  }
  (void)LoadTrace(path).ok();
  (void)CheckTrace(path).ok();
  (void)ReadTail(FileDescriptor(::dup(fd)), path).ok();
  return 0;
}
