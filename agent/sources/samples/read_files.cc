// Reads of /proc, by plain system calls: the program may have replaced open and read.
// Runs on: see read_files.h.  May not: see there.
#include "agent/sources/samples/read_files.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "agent/core/own_descriptor.h"
#include "agent/sources/samples/thread_readings.h"

namespace ranktap::agent::samples {

int ReadDescriptorIn(std::string_view line) {
  constexpr std::array<long, 5> kReads = {SYS_read, SYS_pread64, SYS_readv, SYS_preadv,
                                          SYS_preadv2};
  long number = -1;
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  constexpr std::string_view kFirst = " 0x";
  line.remove_prefix(static_cast<size_t>(rest - line.data()));
  const bool is_read = error == std::errc() && std::ranges::find(kReads, number) != kReads.end();
  if (!is_read || !line.starts_with(kFirst)) return -1;
  int descriptor = -1;
  (void)std::from_chars(line.data() + kFirst.size(), line.data() + line.size(), descriptor, 16);
  return descriptor;
}

std::string_view FileReadBy(int32_t process, int32_t thread, PathBuffer* buffer) {
  char of[16] = "self", path[64], text[256];
  if (process != 0) (void)std::snprintf(of, sizeof(of), "%d", process);
  (void)std::snprintf(path, sizeof(path), "/proc/%s/task/%d/syscall", of, thread);
  OwnDescriptor file;
  if (!OpenOwn(&file, path)) return {};
  const int descriptor = ReadDescriptorIn(ReadOwn(file, text, sizeof(text)));
  if (descriptor < 0) return {};
  (void)std::snprintf(path, sizeof(path), "/proc/%s/fd/%d", of, descriptor);
  const long got = syscall(SYS_readlinkat, AT_FDCWD, path, buffer->data(), buffer->size());
  // "pipe:[77]", "socket:[78]"
  const bool has_path = got > 0 && (*buffer)[0] == '/';
  return has_path ? std::string_view(buffer->data(), static_cast<size_t>(got)) : "";
}

}  // namespace ranktap::agent::samples
