#include "collector/stacks/wait_reason.h"

#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>

namespace ranktap::collector {
namespace {

struct KnownCall {
  int64_t number;
  bool has_descriptor;  // as its first argument
  std::string_view does;
};

constexpr KnownCall kKnownCalls[] = {
    {SYS_read, true, "reads"},
    {SYS_pread64, true, "reads"},
    {SYS_readv, true, "reads"},
    {SYS_preadv, true, "reads"},
    {SYS_recvfrom, true, "receives from"},
    {SYS_recvmsg, true, "receives from"},
    {SYS_accept, true, "waits for a connection to"},
    {SYS_accept4, true, "waits for a connection to"},
    {SYS_connect, true, "connects"},
    {SYS_write, true, "writes"},
    {SYS_pwrite64, true, "writes"},
    {SYS_writev, true, "writes"},
    {SYS_sendto, true, "sends to"},
    {SYS_sendmsg, true, "sends to"},
    {SYS_fsync, true, "writes back"},
    {SYS_fdatasync, true, "writes back"},
    {SYS_flock, true, "waits for the lock of"},
    {SYS_ioctl, true, "waits in ioctl of"},
    {SYS_epoll_wait, true, "waits for events of"},
    {SYS_epoll_pwait, true, "waits for events of"},
    {SYS_poll, false, "waits for descriptors (poll)"},
    {SYS_ppoll, false, "waits for descriptors (ppoll)"},
    {SYS_select, false, "waits for descriptors (select)"},
    {SYS_pselect6, false, "waits for descriptors (select)"},
    {SYS_nanosleep, false, "sleeps"},
    {SYS_clock_nanosleep, false, "sleeps"},
    {SYS_wait4, false, "waits for a child process"},
    {SYS_waitid, false, "waits for a child process"},
    {SYS_pause, false, "waits for a signal"},
    {SYS_rt_sigtimedwait, false, "waits for a signal"},
    {SYS_futex, false, "waits for a lock"},
    {SYS_openat, false, "opens a file"},
};

const KnownCall* Find(const SystemCall& call) {
  for (const KnownCall& known : kKnownCalls) {
    if (known.number == call.number) return &known;
  }
  return nullptr;
}

std::string_view TakeWord(std::string_view* line) {
  const std::string_view word = line->substr(0, line->find(' '));
  line->remove_prefix(std::min(word.size() + 1, line->size()));
  return word;
}

}  // namespace

std::optional<SystemCall> ParseSystemCall(std::string_view line) {
  const std::string_view first = TakeWord(&line);
  SystemCall call;
  const auto [rest, error] =
      std::from_chars(first.data(), first.data() + first.size(), call.number);
  if (error != std::errc() || call.number < 0) return std::nullopt;
  for (uint64_t& argument : call.arguments) {
    std::string_view word = TakeWord(&line);
    if (word.starts_with("0x")) word.remove_prefix(2);
    (void)std::from_chars(word.data(), word.data() + word.size(), argument, 16);
  }
  return call;
}

bool IsFutex(const SystemCall& call) { return call.number == SYS_futex; }

int DescriptorOf(const SystemCall& call) {
  const KnownCall* const known = Find(call);
  return known != nullptr && known->has_descriptor ? static_cast<int>(call.arguments[0]) : -1;
}

std::string DescribeSystemCall(const SystemCall& call, const std::string& descriptor_path) {
  const KnownCall* const known = Find(call);
  if (known == nullptr) return fmt::format("waits in system call {}", call.number);
  if (!known->has_descriptor) return std::string(known->does);
  const int descriptor = DescriptorOf(call);
  if (descriptor_path.empty()) return fmt::format("{} descriptor {}", known->does, descriptor);
  return fmt::format("{} {} (descriptor {})", known->does, descriptor_path, descriptor);
}

}  // namespace ranktap::collector
