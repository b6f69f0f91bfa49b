#include "collector/export/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ranktap::collector {
namespace {

constexpr size_t kBufferBytes = 1u << 20;

}  // namespace

Result<OutputFile> OutputFile::Create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.file_.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.file_.valid()) return SystemFailure(path + ": could not create", errno);
  return file;
}

void OutputFile::Write(std::string_view text) {
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void OutputFile::Flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && error_ == 0) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) error_ = written == 0 ? EIO : errno;
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

std::optional<Failure> OutputFile::Close() {
  Flush();
  if (file_.valid() && ::close(file_.Take()) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return std::nullopt;
  return SystemFailure(path_ + ": could not write", error_);
}

}  // namespace ranktap::collector
