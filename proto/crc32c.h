// CRC32C (Castagnoli), as in iSCSI (RFC 3720, appendix B.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ranktap::proto {

// The checksum of `bytes`; `crc` continues an earlier one. Thread-safe, allocates nothing. Uses the
// SSE4.2 instruction where the processor has it (checked once), else a table.
[[nodiscard]] uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace ranktap::proto
