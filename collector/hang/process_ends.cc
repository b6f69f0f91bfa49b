#include "collector/hang/process_ends.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "collector/stacks/proc_files.h"

namespace ranktap::collector {

EndOrder::EndOrder() : order_(::epoll_create1(EPOLL_CLOEXEC)) {}

// Once: the taking of a zombie by its parent would tell it a second time.
void EndOrder::Watch(pid_t pid, const FileDescriptor& handle) const {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = pid}};
  if (handle.valid()) (void)::epoll_ctl(order_.get(), EPOLL_CTL_ADD, handle.get(), &event);
}

// The kernel adds to its list of what is readable at the list's end.
std::vector<pid_t> EndOrder::Take() const {
  std::vector<pid_t> ended;
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = ::epoll_wait(order_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) ended.push_back(events[i].data.fd);
    if (count < static_cast<int>(events.size())) return ended;
  }
}

FileDescriptor OpenPidfd(pid_t pid) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::optional<int> WaitStatusOf(const FileDescriptor& handle) {
  // linux/pidfd.h of 6.15, which Debian 12 does not have.
  struct PidfdInfo {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
  };
  static_assert(sizeof(PidfdInfo) == 64);
  constexpr uint64_t kExit = 1 << 3;
  PidfdInfo info{.mask = kExit};
  if (!handle.valid() || ::ioctl(handle.get(), _IOWR(0xff, 11, PidfdInfo), &info) != 0 ||
      (info.mask & kExit) == 0) {
    return std::nullopt;
  }
  return info.exit_code;
}

// Before its parent has taken it, /proc has the status; afterwards the pidfd.
std::optional<int> EndStatusOf(pid_t pid, const FileDescriptor& handle) {
  constexpr int kExitCode = 49;
  const auto condition = ConditionOf(pid, pid);
  const auto left = static_cast<int>(StatWord(pid, kExitCode));
  if (left != 0) return left;
  const auto status = WaitStatusOf(handle);
  return status || !condition || condition->state != 'Z' ? status : 0;
}

uint64_t StatWord(pid_t pid, int index) {
  const std::string stat = ReadProcFile(fmt::format("/proc/{}/stat", pid)).value_or("");
  size_t at = stat.rfind(')');
  for (int i = 0; i <= index && at != stat.npos; ++i) at = stat.find(' ', at + 1);
  uint64_t number = 0;
  if (at != stat.npos) {
    (void)std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), number);
  }
  return number;
}

}  // namespace ranktap::collector
