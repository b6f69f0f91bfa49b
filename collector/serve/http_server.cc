#include "collector/serve/http_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>

namespace ranktap::collector {
namespace {

constexpr size_t kLongestHead = 16 << 10;
constexpr int kMostConnections = 32;  // a browser opens six, and a few ahead of use
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};
constexpr std::string_view kEndOfHead = "\r\n\r\n";

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Internal Server Error";
  }
}

// False: the other side has gone, or takes nothing for too long.
bool SendAll(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void SendFile(int connection, int file) {
  std::array<char, 64 << 10> buffer;
  off_t at = 0;
  while (true) {
    const ssize_t read = ::pread(file, buffer.data(), buffer.size(), at);
    if (read <= 0 || !SendAll(connection, {buffer.data(), static_cast<size_t>(read)})) return;
    at += read;
  }
}

// Without the empty line at its end. Empty: none came in time, or it is too long.
std::string ReceiveHead(int connection) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience.tv_sec);
  std::string head;
  std::array<char, 4096> buffer;
  while (head.size() < kLongestHead && std::chrono::steady_clock::now() < until) {
    const ssize_t received = ::recv(connection, buffer.data(), buffer.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return {};
    head.append(buffer.data(), static_cast<size_t>(received));
    if (const size_t end = head.find(kEndOfHead); end != head.npos) return head.substr(0, end + 2);
  }
  return {};
}

// It has sent its request, which its thread has not come to read.
bool HasHeadWaiting(int connection) {
  std::array<char, kLongestHead> buffer;
  const ssize_t size = ::recv(connection, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
  return size > 0 && std::string_view(buffer.data(), static_cast<size_t>(size)).find(kEndOfHead) !=
                         std::string_view::npos;
}

HttpResponse Plain(int status, std::string text) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = std::move(text)};
}

std::string HeadOf(const HttpResponse& response) {
  size_t length = response.body.size();
  if (struct stat status{}; response.file.valid() && ::fstat(response.file.get(), &status) == 0) {
    length = static_cast<size_t>(status.st_size);
  }
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n",
      response.status, ReasonOf(response.status), response.type, length);
  if (!response.location.empty()) head += "Location: " + response.location + "\r\n";
  if (!response.policy.empty()) head += "Content-Security-Policy: " + response.policy + "\r\n";
  if (response.status == 405) head += "Allow: GET, HEAD\r\n";
  return head + "\r\n";
}

}  // namespace

struct HttpServer::State {
  FileDescriptor listener;
  uint16_t port = 0;
  bool is_for_all = false;
  std::function<HttpResponse(const HttpRequest&)> handle;
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::condition_variable one_less;
  // Both guarded by `mutex`. `unheard`: those whose request has not come, the oldest first.
  int connections = 0;
  std::list<int> unheard;
  std::thread thread;

  // A page of elsewhere can have its own name resolved to 127.0.0.1 and then read our answers as
  // its own (DNS rebinding): its browser still says that name.
  bool IsForUs(const HttpRequest& request) const {
    const auto host = request.headers.find("host");
    return host != request.headers.end() && (host->second == fmt::format("127.0.0.1:{}", port) ||
                                             host->second == fmt::format("localhost:{}", port));
  }

  HttpResponse AnswerOf(const std::string& head, bool* with_body) const {
    const std::optional<HttpRequest> request = ParseHttpRequest(head);
    if (!request) return Plain(400, "no HTTP request\n");
    *with_body = request->method != "HEAD";
    if (!is_for_all && !IsForUs(*request)) return Plain(403, "this server is 127.0.0.1's\n");
    if (request->method != "GET" && request->method != "HEAD") return Plain(405, "GET or HEAD\n");
    return handle(*request);
  }

  void Serve(int connection) {
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    const std::string head = ReceiveHead(connection);
    {
      const std::lock_guard lock(mutex);
      unheard.remove(connection);
    }
    if (head.empty()) return;
    bool with_body = true;
    const HttpResponse response = AnswerOf(head, &with_body);
    if (!SendAll(connection, HeadOf(response)) || !with_body) return;
    response.file.valid() ? SendFile(connection, response.file.get())
                          : static_cast<void>(SendAll(connection, response.body));
    ::shutdown(connection, SHUT_WR);
  }

  // Anybody on this machine can connect and say nothing. Called with `mutex` held.
  void DropOneOfTheUnheard() {
    const auto oldest = std::find_if_not(unheard.begin(), unheard.end(), HasHeadWaiting);
    if (oldest == unheard.end()) return;
    ::shutdown(*oldest, SHUT_RDWR);  // its thread wakes, and is one less
    unheard.erase(oldest);
  }

  void Accept() {
    FileDescriptor connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) return;
    {
      std::unique_lock lock(mutex);
      if (connections >= kMostConnections) DropOneOfTheUnheard();
      one_less.wait(lock, [this] { return connections < kMostConnections || ends; });
      if (ends) return;
      ++connections;
      unheard.push_back(connection.get());
    }
    std::thread([this, connection = std::move(connection)]() mutable {
      Serve(connection.get());
      connection.Reset();
      const std::lock_guard lock(mutex);
      --connections;
      one_less.notify_all();
    }).detach();
  }

  void End() {
    ends = true;
    const std::lock_guard lock(mutex);
    for (const int connection : unheard) ::shutdown(connection, SHUT_RDWR);
    one_less.notify_all();
  }

  void Run() {
    while (!ends) {
      pollfd wanted{.fd = listener.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, 200) > 0) Accept();
    }
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

bool HttpServer::Stop() {
  state_->End();
  std::unique_lock lock(state_->mutex);
  return state_->one_less.wait_for(lock, std::chrono::seconds(kPatience.tv_sec),
                                   [this] { return state_->connections == 0; });
}

HttpServer::~HttpServer() {
  state_->End();
  state_->thread.join();
  std::unique_lock lock(state_->mutex);
  state_->one_less.wait(lock, [this] { return state_->connections == 0; });
}

uint16_t HttpServer::port() const { return state_->port; }

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(
    uint16_t port, std::function<HttpResponse(const HttpRequest&)> handle) {
  return ListenAt("127.0.0.1", port, std::move(handle));
}

Result<std::unique_ptr<HttpServer>> HttpServer::ListenAt(
    const std::string& address, uint16_t port,
    std::function<HttpResponse(const HttpRequest&)> handle) {
  const addrinfo wanted{.ai_flags = AI_NUMERICHOST | AI_PASSIVE | AI_NUMERICSERV,
                        .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    return Failure{fmt::format("'{}' is not a numeric address", address)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  auto state = std::make_unique<State>();
  state->handle = std::move(handle);
  state->is_for_all = address != "127.0.0.1";
  state->listener.Reset(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(state->listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::bind(state->listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(state->listener.get(), SOMAXCONN) != 0 ||
      ::getsockname(state->listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return SystemFailure(fmt::format("{}:{}: could not listen", address, port), errno);
  }
  // Both families have it at the same place.
  state->port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  State* const started = state.get();
  started->thread = std::thread([started] { started->Run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

}  // namespace ranktap::collector
