// The log file.
// Runs on: see log.h.  May not: run in a hook in steady state.
#include "agent/core/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <string>

#include "agent/core/file_size_limit.h"
#include "proto/redact.h"

namespace ranktap::agent {
namespace {

constexpr int kMaxLines = 100;

constinit std::atomic<const char*> g_path{nullptr};
constinit std::atomic<int> g_lines{0};

class Line {
 public:
  Line& operator<<(std::string_view text) {
    const size_t fits = std::min(text.size(), bytes_.size() - 1 - size_);
    std::copy_n(text.data(), fits, bytes_.data() + size_);
    size_ += fits;
    return *this;
  }
  Line& operator<<(int number) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), end);
  }
  std::string_view Finish() {
    bytes_[size_++] = '\n';
    return {bytes_.data(), size_};
  }

 private:
  std::array<char, 1024> bytes_;
  size_t size_ = 0;
};

}  // namespace

void OpenLog(const char* path) {
  // Kept for good: another thread may be reading it.
  if (path != nullptr && path[0] != '\0') g_path.store((new std::string(path))->c_str());
}

void Log(std::string_view text) { Log(text, {}); }

void Log(std::string_view text, std::string_view detail) {
  const char* path = g_path.load();
  if (path == nullptr || g_lines.fetch_add(1) >= kMaxLines) return;
  const int saved_errno = errno;
  // Opened each time: a program may close descriptors that it does not know, and reuse the number.
  // O_NONBLOCK: a FIFO that nobody reads would hold the program.
  const int fd =
      open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  struct stat status;
  const bool fits = fd >= 0 && fstat(fd, &status) == 0 &&
                    static_cast<uint64_t>(status.st_size) + sizeof(Line) <= LargestFile();
  if (fits) {
    Line line;
    line << "ranktap[" << static_cast<int>(getpid()) << "] " << text;
    if (!detail.empty()) line << ": " << detail;
    std::string_view whole = line.Finish();
    std::string kept;
    if (proto::redact::Redactor(whole, false).Run(&kept)) whole = kept;
    [[maybe_unused]] const ssize_t written = ::write(fd, whole.data(), whole.size());
  }
  if (fd >= 0) close(fd);
  errno = saved_errno;
}

}  // namespace ranktap::agent
