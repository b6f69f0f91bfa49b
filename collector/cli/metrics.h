// `run|collect --metrics` and `--metrics-file`: what ranks do now, for Prometheus. One page, read
// only, on this machine's loopback unless an address is given; a scrape asks the collector, and
// nothing happens between two.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "collector/file/result.h"
#include "collector/serve/http_server.h"
#include "collector/terminal/arguments.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

struct MetricsOptions {
  std::string address, file;
};
void AddMetricsOptions(Arguments* app, MetricsOptions* options);

struct MetricsPlace {
  std::string address;  // numeric
  uint16_t port = 0;
};
// "9400" and "localhost:9400" are of the loopback; "0.0.0.0:9400", "[::]:9400" are of all.
Result<MetricsPlace> MetricsPlaceOf(const std::string& text);

// Serves, and writes, until it is destroyed; the collector at `socket` is asked. What cannot be had
// is complained of: a job does not wait for its metrics.
class Metrics {
 public:
  Metrics(const MetricsOptions& options, const std::string& socket);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Null: nothing is served.
  const HttpServer* server() const { return server_.get(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::string file_;
  std::jthread writer_;
};

// OpenMetrics 1.0, or the older text format that every reader knows.
enum class MetricsFormat : uint8_t { kOpenMetrics, kText };
// At most 32 series a process.
std::string MetricsText(const v1::ControlReply& reply, MetricsFormat format);

}  // namespace ranktap::collector
