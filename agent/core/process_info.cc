// Reads /proc about this process.
// Runs on: the thread that starts the agent.  May not: run in a hook.
#include "agent/core/process_info.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "agent/core/host_clock.h"
#include "proto/redact.h"

namespace ranktap::agent {
namespace {

// Whole small files of /proc; read(2) rather than a stream, whose locale a host may have changed.
std::string ReadFile(const char* path, size_t limit = 64 << 10) {
  std::string content;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return content;
  std::array<char, 4096> buffer;
  ssize_t bytes;
  while (content.size() < limit && (bytes = read(fd, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<size_t>(bytes));
  }
  close(fd);
  return content;
}

std::string Trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::vector<std::string> SplitAtNul(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "NSpid:\t123\t7\n", outermost first.
std::vector<uint32_t> ReadNamespacePids() {
  const std::string status = ReadFile("/proc/self/status");
  constexpr std::string_view kLabel = "\nNSpid:";
  std::vector<uint32_t> pids;
  const size_t at = status.find(kLabel);
  if (at == std::string::npos) return pids;
  const char* next = status.c_str() + at + kLabel.size();
  while (*next == '\t' || *next == ' ') {
    char* end = nullptr;
    pids.push_back(static_cast<uint32_t>(std::strtoul(next, &end, 10)));
    if (end == next) break;
    next = end;
  }
  return pids;
}

// Field 22 of /proc/self/stat. The second field may hold spaces and parentheses: count from the
// last closing one.
uint64_t ReadStartTicks() {
  const std::string stat = ReadFile("/proc/self/stat");
  size_t at = stat.rfind(')');
  constexpr int kFieldsAfterName = 20;
  for (int i = 0; i < kFieldsAfterName && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(stat.c_str() + at, nullptr, 10);
}

uint64_t StartRealtimeNs(uint64_t start_ticks) {
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  if (start_ticks == 0 || ticks_per_second <= 0) return 0;
  const uint64_t since_boot_ns =
      start_ticks * (1'000'000'000u / static_cast<uint64_t>(ticks_per_second));
  return ClockNs(CLOCK_REALTIME) - ClockNs(CLOCK_BOOTTIME) + since_boot_ns;
}

}  // namespace

ProcessInfo ReadProcessInfo(bool redact) {
  ProcessInfo info{};
  info.pid = static_cast<uint32_t>(getpid());
  info.parent_pid = static_cast<uint32_t>(getppid());
  info.uid = getuid();
  info.ns_pids = ReadNamespacePids();
  utsname names;
  if (uname(&names) == 0) info.host = names.nodename;
  info.boot_id = Trimmed(ReadFile("/proc/sys/kernel/random/boot_id"));
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length > 0) info.executable.assign(path.data(), static_cast<size_t>(length));
  info.start_ticks = ReadStartTicks();
  info.start_realtime_ns = StartRealtimeNs(info.start_ticks);
  info.command_line = SplitAtNul(ReadFile("/proc/self/cmdline"));
  if (redact) {
    proto::RedactCommand(info.command_line);
    proto::RedactText(info.executable);
  }
  return info;
}

}  // namespace ranktap::agent
