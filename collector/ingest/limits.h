// The most that one user may take of a collector. Every peer is hostile input: nothing here depends
// on good will, and what is over a limit is refused and counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collector/file/trace_format.h"

namespace ranktap::collector {

struct IngestLimits {
  size_t connections = 4096;
  size_t connections_per_user = 2048;
  size_t sessions = 8192;
  size_t sessions_per_user = 4096;
  size_t writers_per_session = 65536;
  uint64_t hello_timeout_ns = 5'000'000'000;
  // A process that closed its socket and lives on may come back within this time.
  uint64_t reconnect_ns = 30'000'000'000;
  // Frames in memory that are not written yet. Over the first, blocks close early; over the second
  // the sockets are not read until the disk has caught up. With 64 ranks sending at once this is
  // what keeps the collector within 64 MiB (tests/bench/ingest_bench).
  uint64_t open_block_bytes = 12u << 20;
  int small_block_ages = kSmallBlockAges;  // how long a small block may stay open
  uint64_t queued_bytes = 8u << 20;
  // Half frames, names and positions of one user's processes. Over it that user's sockets are not
  // read until there is room again. 64 ranks with 100,000 names each take less than half.
  uint64_t memory_per_user = 256u << 20;
  // After a refusal that a limit or the disk is the reason of.
  uint32_t retry_ms = 5000;
};

// The same for a process that may have so many descriptors. A session takes five of them: its
// connection, its process, its rings, its file and, with a job of its own, its run's directory. One
// user gets half of all sessions.
inline IngestLimits WithinDescriptors(uint64_t descriptors) {
  IngestLimits limits;
  const auto most = static_cast<size_t>(descriptors / 6);
  limits.sessions = std::min(limits.sessions, most);
  limits.connections = std::min(limits.connections, most);
  limits.sessions_per_user = std::min(limits.sessions_per_user, limits.sessions / 2);
  limits.connections_per_user = std::min(limits.connections_per_user, limits.connections / 2);
  return limits;
}

}  // namespace ranktap::collector
