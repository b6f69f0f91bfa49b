// A small HTTP server for one person's browser on this machine: GET and HEAD, one answer a
// connection. It listens on 127.0.0.1 alone, unless a caller names another address.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"
#include "collector/serve/http_request.h"

namespace ranktap::collector {

struct HttpResponse {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
  FileDescriptor file = {};   // sent instead of `body`, from its start
  std::string location = {};  // of a redirection
  std::string policy = {};    // Content-Security-Policy
};

class HttpServer {
 public:
  // `handle` is called on threads of the server's, several at a time. `port` 0: any that is free.
  static Result<std::unique_ptr<HttpServer>> Listen(
      uint16_t port, std::function<HttpResponse(const HttpRequest&)> handle);
  // At a numeric address of this machine, for pages that every machine may read: whatever name a
  // request has for it.
  static Result<std::unique_ptr<HttpServer>> ListenAt(
      const std::string& address, uint16_t port,
      std::function<HttpResponse(const HttpRequest&)> handle);
  // Takes no more connections and waits for the answers that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

  // The same, 5 s at most. False: an answer is still being made, and the destructor would wait.
  [[nodiscard]] bool Stop();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ranktap::collector
