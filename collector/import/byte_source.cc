#include "collector/import/byte_source.h"

#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "collector/file/owned_file.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

constexpr size_t kCompressedChunk = 256 << 10;
constexpr size_t kMostPadding = 64 << 20;  // of tapes; a hole of a sparse file may be a TiB
constexpr int kGzip = 16 + MAX_WBITS;

}  // namespace

struct ByteSource::Inflater {
  z_stream stream{};
  std::vector<char> input = std::vector<char>(kCompressedChunk);
  bool ended = false;
  size_t padding = 0;
  Inflater() { inflateInit2(&stream, kGzip); }
  ~Inflater() { inflateEnd(&stream); }
};

ByteSource::ByteSource(FileDescriptor file, bool compressed) : file_(std::move(file)) {
  if (compressed) inflater_ = std::make_unique<Inflater>();
}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::Open(const std::string& path) {
  Result<FileDescriptor> file = OpenRegularFile(path);
  if (!file) return Failure{file.message()};
  unsigned char magic[2] = {};
  const bool compressed = ::pread(file->get(), magic, sizeof magic, 0) == sizeof magic &&
                          magic[0] == 0x1f && magic[1] == 0x8b;
  return ByteSource(std::move(*file), compressed);
}

size_t ByteSource::Read(char* into, size_t size) {
  if (!damage_.empty()) return 0;
  return inflater_ == nullptr ? ReadFile(into, size) : Inflate(into, size);
}

size_t ByteSource::ReadFile(char* into, size_t size) {
  ssize_t got = -1;
  do {
    got = ::read(file_.get(), into, size);
  } while (got < 0 && errno == EINTR);
  if (got < 0) damage_ = fmt::format("could not read on: {}", std::strerror(errno));
  const auto read = static_cast<size_t>(std::max<ssize_t>(got, 0));
  file_bytes_ += read;
  Progress().done += read;
  return read;
}

size_t ByteSource::Inflate(char* into, size_t size) {
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(into);
  stream.avail_out = static_cast<uInt>(size);
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0) {
      const size_t got = ReadFile(inflater_->input.data(), inflater_->input.size());
      if (got == 0) {
        if (!inflater_->ended && damage_.empty()) damage_ = "the gzip stream is cut off";
        break;
      }
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      stream.avail_in = static_cast<uInt>(got);
    }
    if (inflater_->ended) {  // gzip files may be several, one after another, and padded with zeros
      while (stream.avail_in > 0 && *stream.next_in == 0) {
        ++stream.next_in;
        --stream.avail_in;
        ++inflater_->padding;
      }
      if (inflater_->padding > kMostPadding) break;
      if (stream.avail_in == 0) continue;
      if (inflateReset(&stream) != Z_OK) break;
      inflater_->ended = false;
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inflater_->ended = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      damage_ = fmt::format("the gzip stream is damaged: {}",
                            stream.msg == nullptr ? fmt::format("error {}", status) : stream.msg);
      break;
    }
  }
  return size - stream.avail_out;
}

}  // namespace ranktap::collector
