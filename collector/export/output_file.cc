#include "collector/export/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <vector>

namespace ranktap::collector {
namespace {

constexpr size_t kBufferBytes = 1u << 20, kWithoutCopy = 128u << 10;

}  // namespace

struct OutputFile::Deflater {
  // Level 1: files are written to be loaded once, and level 6 takes three times as long for a
  // quarter less.
  Deflater() { deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY); }
  ~Deflater() { deflateEnd(&stream); }
  z_stream stream{};
  std::vector<char> out = std::vector<char>(256u << 10);
};

void OutputFile::DeleteDeflater::operator()(Deflater* deflater) const { delete deflater; }

Result<OutputFile> OutputFile::Create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.file_.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.file_.valid()) return SystemFailure(fmt::format("{}: could not create", path), errno);
  if (path.ends_with(".gz")) file.deflater_.reset(new Deflater);
  return file;
}

void OutputFile::Write(std::string_view text) {
  written_ += text.size();
  if (text.size() >= kWithoutCopy && deflater_ == nullptr) {
    Flush();
    return WriteOut(text);
  }
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void OutputFile::Flush() {
  if (deflater_ != nullptr) {
    Compress(buffer_, false);
  } else {
    WriteOut(buffer_);
  }
  buffer_.clear();
}

void OutputFile::WriteOut(std::string_view rest) {
  while (!rest.empty() && error_ == 0) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) error_ = written == 0 ? EIO : errno;
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::Compress(std::string_view bytes, bool last) {
  z_stream& stream = deflater_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(deflater_->out.data());
    stream.avail_out = static_cast<uInt>(deflater_->out.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    WriteOut({deflater_->out.data(), deflater_->out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

std::optional<Failure> OutputFile::Close() {
  Flush();
  if (deflater_ != nullptr) Compress({}, true);
  if (file_.valid() && ::close(file_.Take()) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return std::nullopt;
  return SystemFailure(fmt::format("{}: could not write", path_), error_);
}

}  // namespace ranktap::collector
