#include "collector/launch/new_run.h"

#include <unistd.h>

#include "collector/ingest/collector.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/version.h"

namespace ranktap::collector {

RunInfo DescribeNewRun(const std::string& level) {
  RunInfo info;
  info.run = ToHex(RandomId());
  info.collector_version = kVersion;
  info.level = level;
  info.start_realtime_ns = RealtimeNs();
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) == 0) info.host = host;
  return info;
}

}  // namespace ranktap::collector
