// A server and its store, whose writer thread can be made to wait.
#pragma once

#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <utility>

#include "collector/ingest/net/public_socket.h"
#include "collector/ingest/server.h"
#include "collector/ingest/store/trace_store.h"

namespace ranktap::collector {

class HeldStore {
 public:
  HeldStore(const std::string& root, const std::string& socket, IngestLimits limits = {})
      : listener_(std::move(*PublicSocket::Create(socket, false))),
        server_(listener_.TakeListener(), Options(limits)),
        store_(std::move(*RunRegistry::Open(root, {})), std::string(16, 'c'),
               [this](StoreReply reply) { server_.OnStoreReply(std::move(reply)); }),
        thread_([this] { server_.Run(&store_); }) {}
  ~HeldStore() {
    server_.Stop(0);
    thread_.join();
  }
  void Hold() {
    store_.Ping([this] { go_on_.get_future().wait(); });
  }
  void GoOn() { go_on_.set_value(); }

 private:
  static ServerOptions Options(const IngestLimits& limits) {
    ServerOptions options;
    options.limits = limits;
    options.limits.small_block_ages = 1;
    options.collector_id = std::string(16, 'c');
    options.owner = ::geteuid();
    options.level = v1::LEVEL_RANGES;
    return options;
  }
  std::promise<void> go_on_;
  PublicSocket listener_;
  Server server_;
  TraceStore store_;
  std::thread thread_;
};

}  // namespace ranktap::collector
