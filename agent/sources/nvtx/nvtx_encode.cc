// Field by field.
// Runs on: user threads, once per registration.  May not: run in a hook in steady state.
#include "agent/sources/nvtx/nvtx_encode.h"

#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <span>

#include "agent/core/arena.h"
#include "agent/sources/nvtx/nvtx_names.h"
#include "proto/encode_entry.h"

namespace ranktap::agent {
namespace {

void AddText(protozero::pbf_writer& message, uint32_t field, const char* text) {
  if (text != nullptr) message.add_bytes(field, text, strnlen(text, kMaxNameBytes));
}

}  // namespace

std::string EncodeSchema(uint64_t id, uint32_t domain, const nvtxPayloadSchemaAttr_t& schema) {
  const auto has = [&schema](uint64_t field) { return (schema.fieldMask & field) != 0; };
  std::string bytes;
  protozero::pbf_writer message(bytes);
  message.add_uint64(1, id);
  message.add_uint32(2, domain);
  if (has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME)) AddText(message, 3, schema.name);
  message.add_uint32(4, static_cast<uint32_t>(schema.type));
  if (has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS)) message.add_uint64(5, schema.flags);
  if (has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE)) {
    message.add_uint64(6, schema.payloadStaticSize);
  }
  if (has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT)) message.add_uint64(7, schema.packAlign);
  for (size_t i = 0; schema.entries != nullptr && i < schema.numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& field = schema.entries[i];
    protozero::pbf_writer entry(message, 8);
    entry.add_uint64(1, field.flags);
    entry.add_uint64(2, field.type);
    AddText(entry, 3, field.name);
    AddText(entry, 4, field.description);
    entry.add_uint64(5, field.arrayOrUnionDetail);
    entry.add_uint64(6, field.offset);
  }
  return bytes;
}

std::string EncodeEnum(uint64_t id, uint32_t domain, const nvtxPayloadEnumAttr_t& enumeration) {
  const auto has = [&enumeration](uint64_t field) { return (enumeration.fieldMask & field) != 0; };
  std::string bytes;
  protozero::pbf_writer message(bytes);
  message.add_uint64(1, id);
  message.add_uint32(2, domain);
  if (has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME)) AddText(message, 3, enumeration.name);
  if (has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE)) message.add_uint64(4, enumeration.sizeOfEnum);
  for (size_t i = 0; enumeration.entries != nullptr && i < enumeration.numEntries; ++i) {
    const nvtxPayloadEnum_t& value = enumeration.entries[i];
    protozero::pbf_writer entry(message, 5);
    AddText(entry, 1, value.name);
    entry.add_uint64(2, value.value);
    entry.add_bool(3, value.isFlag != 0);
  }
  return bytes;
}

std::string EncodeDefinition(proto::EntryKind kind, const std::string& content,
                             const proto::ArenaEntry* domain) {
  std::string bytes;
  protozero::pbf_writer dictionary(bytes);
  if (domain != nullptr) {
    (void)proto::EncodeEntry(proto::EntryKind::kNvtxDomain, domain->id, Arena::ContentOf(*domain),
                             dictionary);
  }
  (void)proto::EncodeEntry(kind, 0, std::as_bytes(std::span(content)), dictionary);
  return bytes;
}

}  // namespace ranktap::agent
