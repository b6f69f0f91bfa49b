#include "collector/ingest/collector.h"

#include <pthread.h>
#include <sys/random.h>

namespace ranktap::collector {

Collector::Collector(FileDescriptor listener, RunDirectory directory, RunInfo info,
                     const ServerOptions& options)
    : Collector(std::move(listener), RunRegistry(std::move(directory), std::move(info)), options) {}

Collector::Collector(FileDescriptor listener, RunRegistry registry, const ServerOptions& options)
    : server_(std::move(listener), options),
      store_(
          std::move(registry), options.collector_id,
          [this](StoreReply reply) { server_.OnStoreReply(std::move(reply)); }, options.keep),
      thread_([this] { server_.Run(&store_); }) {
  (void)::pthread_setname_np(thread_.native_handle(), "ranktap-server");
  if (!options.sample_devices) return;
  devices_ = std::make_unique<DeviceSampler>([this](std::vector<DeviceReading> readings) {
    server_.OnDeviceReadings(std::move(readings));
  });
}

void Collector::Ping() {
  server_.Ping([this] { store_.Ping([this] { beats_.fetch_add(1, std::memory_order_relaxed); }); });
}

Collector::~Collector() {
  if (thread_.joinable()) (void)Finish(0, [](RunInfo*) {});
}

RunInfo Collector::Finish(uint64_t grace_ns, const std::function<void(RunInfo*)>& finish) {
  devices_.reset();
  server_.Stop(grace_ns);
  thread_.join();
  return store_.Finish([&](RunInfo* info) {
    info->refused = server_.refused();
    finish(info);
  });
}

std::string RandomId() {
  std::string id(16, '\0');
  // Blocks only before the kernel's pool is ready, early at boot.
  while (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
  }
  return id;
}

}  // namespace ranktap::collector
