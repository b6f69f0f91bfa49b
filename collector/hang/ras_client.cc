#include "collector/hang/ras_client.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kDefault = "127.0.0.1:28028";
constexpr size_t kMostBytes = 1 << 20, kMostLine = 256;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// No name is looked up, which could take any time.
std::optional<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end || port == 0) return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address address;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    address.size = sizeof(four);
    std::memcpy(&address.storage, &four, sizeof(four));
  } else if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    address.size = sizeof(six);
    std::memcpy(&address.storage, &six, sizeof(six));
  } else {
    return std::nullopt;
  }
  return address;
}

class Talk {
 public:
  Talk(const Address& address, Clock::time_point deadline)
      : socket_(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        deadline_(deadline) {
    const auto* const to = reinterpret_cast<const sockaddr*>(&address.storage);
    if (!socket_.valid() ||
        (::connect(socket_.get(), to, address.size) != 0 && errno != EINPROGRESS)) {
      return;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    is_open_ = WaitFor(POLLOUT) &&
               ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  bool is_open() const { return is_open_; }

  // The next line, without its end; nullopt: none came.
  std::optional<std::string> Ask(std::string_view question) {
    if (::send(socket_.get(), question.data(), question.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(question.size())) {
      return std::nullopt;
    }
    while (true) {
      const size_t end = received_.find('\n');
      if (end != received_.npos) {
        std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
      }
      if (received_.size() > kMostLine || !Receive()) return std::nullopt;
    }
  }
  // All that comes until the other end closes. False: it did not, in time or within the limit.
  bool AskForAll(std::string_view question) {
    if (::send(socket_.get(), question.data(), question.size(), MSG_NOSIGNAL) < 0) return false;
    while (received_.size() < kMostBytes) {
      if (!Receive()) return has_ended_;
    }
    return false;
  }
  const std::string& received() const { return received_; }

 private:
  bool WaitFor(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    pollfd polled{.fd = socket_.get(), .events = events, .revents = 0};
    return left.count() > 0 && ::poll(&polled, 1, static_cast<int>(left.count())) > 0;
  }
  bool Receive() {
    std::array<char, 16 << 10> buffer;
    if (!WaitFor(POLLIN)) return false;
    const size_t room = std::min(buffer.size(), kMostBytes - received_.size());
    const ssize_t got = ::recv(socket_.get(), buffer.data(), room, 0);
    has_ended_ = got == 0;
    if (got > 0) received_.append(buffer.data(), static_cast<size_t>(got));
    return got > 0;
  }

  FileDescriptor socket_;
  Clock::time_point deadline_;
  std::string received_;
  bool is_open_ = false, has_ended_ = false;
};

// Lines for a terminal.
std::string OnlyText(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(
      clean,
      [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte != '\n' && byte != '\t' && (byte < ' ' || byte >= 0x7f);
      },
      '?');
  return clean;
}

}  // namespace

std::string AskRas(const std::string& address, std::chrono::milliseconds patience) {
  const std::string_view where = address.empty() ? kDefault : std::string_view(address);
  const auto parsed = ParseAddress(where);
  if (!parsed) return fmt::format("NCCL_RAS_ADDR is {}: no IP address and port\n", OnlyText(where));
  Talk talk(*parsed, Clock::now() + patience);
  if (!talk.is_open()) return "";
  const auto protocol = talk.Ask("client protocol 2\n");
  if (!protocol || !protocol->starts_with("SERVER PROTOCOL")) {
    return fmt::format(
        "{} is not NCCL's RAS: {}\n", OnlyText(where),
        protocol ? "it answers " + OnlyText(protocol->substr(0, kMostLine)) : "no line came");
  }
  // RAS waits so long for its peers, and reports without those that did not answer.
  (void)talk.Ask("timeout 2\n");
  const bool is_whole = talk.AskForAll("verbose status\n");
  std::string text = OnlyText(talk.received());
  if (!is_whole) {
    text += fmt::format("\n(cut off: {})\n", text.size() >= kMostBytes ? "1 MiB" : "no more came");
  }
  return text;
}

}  // namespace ranktap::collector
