// Schemas out, payload bytes along.
// Runs on: user threads.  May not: follow pointers inside a payload (deep copies are not made).
#include "agent/sources/nvtx/nvtx_payload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <string>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/contain.h"
#include "agent/sources/nvtx/nccl_rank.h"
#include "agent/sources/nvtx/nvtx_encode.h"
#include "agent/sources/nvtx/nvtx_names.h"

namespace ranktap::agent {

using proto::EntryKind;

namespace {

// The sizes of static schemas, for payloads that do not say theirs. Append-only; a reader sees an
// id only after its size. Programs have tens of schemas: beyond 512, unsized payloads are dropped.
struct SizedSchema {
  std::atomic<uint64_t> id;
  uint64_t bytes;
};
constinit std::array<SizedSchema, 512> g_sizes{};
constinit std::atomic<uint32_t> g_size_count{0};
constinit std::atomic<uint64_t> g_next_dynamic{NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START};

void RememberSize(uint64_t id, uint64_t bytes) {
  const uint32_t index = g_size_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= g_sizes.size()) return;
  g_sizes[index].bytes = bytes;
  g_sizes[index].id.store(id, std::memory_order_release);
}

uint64_t SizeOf(uint64_t id) {
  const size_t count = std::min<size_t>(g_size_count.load(), g_sizes.size());
  for (size_t i = 0; i < count; ++i) {
    if (g_sizes[i].id.load(std::memory_order_acquire) == id) return g_sizes[i].bytes;
  }
  return 0;
}

// Into the arena, for a drain after death, and as a dictionary frame.
uint64_t Publish(EntryKind kind, uint64_t id, nvtxDomainHandle_t domain, const std::string& bytes) {
  (void)Names().Intern(kind, std::as_bytes(std::span(bytes)));
  Announce(proto::FrameType::kDictionary, true,
           EncodeDefinition(kind, bytes, Names().Find(FromHandle(domain))));
  return id;
}

uint32_t DomainId(nvtxDomainHandle_t domain) {
  const auto* entry = Names().Find(FromHandle(domain));
  return entry == nullptr ? 0 : entry->id;
}

}  // namespace

void PayloadBlob::Append(std::span<const nvtxPayloadData_t> payloads) {
  for (const nvtxPayloadData_t& payload : payloads) {
    constexpr size_t kUnknownSize = std::numeric_limits<size_t>::max();
    const uint64_t size = payload.size == kUnknownSize ? SizeOf(payload.schemaId) : payload.size;
    const uint64_t head[2] = {payload.schemaId, size};
    const uint64_t padded = (size + 7) & ~uint64_t{7};
    if (payload.payload == nullptr || size > bytes_.size() ||
        sizeof(head) + padded > bytes_.size() - size_) {
      dropped_ += static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX - dropped_));
      continue;
    }
    std::memcpy(bytes_.data() + size_, head, sizeof(head));
    std::memcpy(bytes_.data() + size_ + sizeof(head), payload.payload, size);
    std::memset(bytes_.data() + size_ + sizeof(head) + size, 0, padded - size);
    size_ += sizeof(head) + padded;
  }
}

std::span<const nvtxPayloadData_t> ExtendedPayloads(const nvtxEventAttributes_t& attributes) {
  if (attributes.payloadType != NVTX_PAYLOAD_TYPE_EXT) return {};
  // The count lies in the field that was reserved0 before the extension.
  constexpr int32_t kMostPayloads = 64;
  const auto count = static_cast<int32_t>(attributes.reserved0);
  if (count <= 0 || count > kMostPayloads) return {};
  return {reinterpret_cast<const nvtxPayloadData_t*>(attributes.payload.ullValue),
          static_cast<size_t>(count)};
}

uint64_t RegisterPayloadSchema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* schema) {
  if (schema == nullptr) return 0;
  const bool has_id = (schema->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) != 0;
  const uint64_t id =
      has_id && schema->schemaId != 0 ? schema->schemaId : g_next_dynamic.fetch_add(1);
  if ((schema->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE) != 0) {
    RememberSize(id, schema->payloadStaticSize);
  }
  LearnNcclSchema(domain, id, *schema);
  return Contain(id, [&] {
    return Publish(EntryKind::kNvtxSchema, id, domain, EncodeSchema(id, DomainId(domain), *schema));
  });
}

uint64_t RegisterPayloadEnum(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t* enumeration) {
  if (enumeration == nullptr) return 0;
  const bool has_id = (enumeration->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID) != 0;
  const uint64_t id =
      has_id && enumeration->schemaId != 0 ? enumeration->schemaId : g_next_dynamic.fetch_add(1);
  return Contain(id, [&] {
    return Publish(EntryKind::kNvtxEnum, id, domain,
                   EncodeEnum(id, DomainId(domain), *enumeration));
  });
}

}  // namespace ranktap::agent
