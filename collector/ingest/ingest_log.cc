#include "collector/ingest/ingest_log.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include "collector/file/file_descriptor.h"
#include "collector/file/printable.h"
#include "collector/ingest/monotonic_clock.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kLogEveryNs = 1'000'000'000;

}  // namespace

IngestLog::IngestLog(const std::string& path) {
  if (path.empty()) return;
  // Created here, so that it is 0600 whatever the umask; spdlog then appends to it.
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  try {
    logger_ = std::make_shared<spdlog::logger>(
        "ranktap", std::make_shared<spdlog::sinks::basic_file_sink_st>(path));
    logger_->flush_on(spdlog::level::warn);
  } catch (const spdlog::spdlog_ex& error) {
    ++counts_[std::string("log: ") + error.what()];
  }
}

IngestLog::~IngestLog() = default;

void IngestLog::Count(const std::string& kind, const std::string& detail) {
  ++counts_[kind];
  if (logger_ == nullptr) return;
  uint64_t& last = last_logged_ns_[kind];
  const uint64_t now = MonotonicRawNs();
  if (last != 0 && now - last < kLogEveryNs) return;
  last = now;
  std::string text = Printable(detail);
  proto::RedactText(text);
  logger_->warn("{} (so far {}): {}", Printable(kind), counts_[kind], text);
}

}  // namespace ranktap::collector
