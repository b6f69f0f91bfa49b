// `run|collect --metrics`: what ranks do now, for Prometheus, as OpenMetrics 1.0. One page, read
// only, on this machine's loopback; a scrape asks the collector, and nothing happens between two.
#pragma once

#include <memory>
#include <string>

#include "collector/file/result.h"
#include "collector/serve/http_server.h"
#include "collector/terminal/arguments.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

void AddMetricsOption(Arguments* app, std::string* address);

// "127.0.0.1:9400", "localhost:9400" or "9400" -> 9400. A failure of any other address.
Result<uint16_t> MetricsPort(const std::string& address);

// Serves until it is destroyed; the collector at `socket` is asked. Null: no address was given, or
// after a complaint: a job does not wait for its metrics.
std::unique_ptr<HttpServer> ServeMetrics(const std::string& address, const std::string& socket);

// At most 30 series a process.
std::string MetricsText(const v1::ControlReply& reply);

}  // namespace ranktap::collector
