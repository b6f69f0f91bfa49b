// NVTX's payload extension: schemas and enums as registered, payload bytes as given. Nothing is
// interpreted here; a reader decodes by the schema.
// Runs on: user threads.  May not: allocate, lock, log; but for registrations, which a program
// makes once per schema.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <array>
#include <cstdint>
#include <span>

namespace ranktap::agent {

// Copies of payloads, as they follow an event: {u64 schema id, u64 bytes, data padded to 8}...
class PayloadBlob {
 public:
  // Payloads beyond a kilobyte are dropped whole and their bytes counted: hooks must get by with
  // 4 KiB of stack.
  void Append(std::span<const nvtxPayloadData_t> payloads);

  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  uint32_t dropped() const { return dropped_; }

 private:
  std::array<std::byte, 1024> bytes_;
  size_t size_ = 0;
  uint32_t dropped_ = 0;
};

// The extended payloads of an event's attributes; empty when its payload is of another type.
std::span<const nvtxPayloadData_t> ExtendedPayloads(const nvtxEventAttributes_t& attributes);

uint64_t RegisterPayloadSchema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* schema);
uint64_t RegisterPayloadEnum(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t* enumeration);

}  // namespace ranktap::agent
