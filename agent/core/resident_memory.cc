// Reads how much memory the process has in RAM. By plain system calls: the program may have
// replaced open and read.
// Runs on: the sender thread.  May not: run in a hook, allocate.
#include "agent/core/resident_memory.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace ranktap::agent {
namespace {

// "VmRSS:\t  1234 kB", in bytes.
uint64_t BytesAfter(std::string_view status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == status.npos) return 0;
  status.remove_prefix(at + key.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  uint64_t kib = 0;
  std::from_chars(status.data(), status.data() + status.size(), kib);
  return kib * 1024;
}

}  // namespace

ResidentMemory ParseResidentMemory(std::string_view status) {
  return {BytesAfter(status, "\nVmRSS:"), BytesAfter(status, "\nVmHWM:")};
}

ResidentMemory ResidentMemoryReader::Read() {
  if (!opened_) {
    opened_ = true;
    file_.Adopt(
        static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC)));
  }
  const int file = file_.get();
  if (file < 0) return {};
  std::array<char, 4096> status;
  const long length = syscall(SYS_pread64, file, status.data(), status.size(), 0);
  if (length <= 0) return {};
  return ParseResidentMemory({status.data(), static_cast<size_t>(length)});
}

}  // namespace ranktap::agent
