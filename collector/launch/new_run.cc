#include "collector/launch/new_run.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "collector/file/read_run_info.h"
#include "collector/ingest/collector.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/launch/resource_attributes.h"
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
  info.metadata = ResourceAttributes();
  RedactAsAsked(&info);
  return info;
}

void RedactAsAsked(RunInfo* info) {
  const char* const asked = ::getenv("RANKTAP_REDACT");
  if (asked == nullptr || std::string_view(asked) != "0") Redact(info);
}

}  // namespace ranktap::collector
