// What one user may take of a collector. Every peer is hostile input: nothing here depends on good
// will, and what is over a limit is refused and counted.
#pragma once

#include <cstddef>
#include <cstdint>

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
  uint64_t queued_bytes = 8u << 20;
};

}  // namespace ranktap::collector
