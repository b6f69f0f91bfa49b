// Things that ingest turned away or could not do: counted by kind, and logged at most once a second
// each, so that a storm of failures is a handful of lines. Never on the job's stdout or stderr.
// Server's thread only; the only file that knows spdlog.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace ranktap::collector {

class IngestLog {
 public:
  // `path`: where to log, appended to, 0600; empty: nowhere (the counts remain).
  explicit IngestLog(const std::string& path);
  ~IngestLog();

  void Count(const std::string& kind, const std::string& detail);
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  std::shared_ptr<spdlog::logger> logger_;
  std::map<std::string, uint64_t> counts_;
  std::map<std::string, uint64_t> last_logged_ns_;
};

}  // namespace ranktap::collector
