// NVTX registrations as protobuf: v1.PayloadSchema, v1.PayloadEnum, v1.Dictionary.
// Runs on: user threads, once per registration.  May not: run in a hook in steady state
// (allocates).
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <string>

#include "proto/ring.h"

namespace ranktap::agent {

// `domain` is the dictionary's id, 0 the default domain.
std::string EncodeSchema(uint64_t id, uint32_t domain, const nvtxPayloadSchemaAttr_t& schema);
std::string EncodeEnum(uint64_t id, uint32_t domain, const nvtxPayloadEnumAttr_t& enumeration);

// A v1.Dictionary with the encoded schema or enum, and with its domain (nullptr: the default one),
// which no event may have used yet.
std::string EncodeDefinition(proto::EntryKind kind, const std::string& content,
                             const proto::ArenaEntry* domain);

}  // namespace ranktap::agent
