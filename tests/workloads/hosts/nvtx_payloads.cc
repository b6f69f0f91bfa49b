#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstring>

#include "tests/workloads/hosts/nvtx_everything.h"

namespace {

constexpr uint64_t kStaticSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 40;
constexpr uint64_t kStaticEnum = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 41;

enum class Operation : uint8_t { kSum = 0, kProduct = 1, kMaximum = 2 };

// As NCCL describes a collective: numbers, an enumeration, a fixed array.
struct Collective {
  uint64_t communicator;
  size_t bytes;
  Operation operation;
  int32_t shape[3];
  float scale;
  double seconds;
};

struct Nested {
  int64_t step;
  Collective collective;
};

uint64_t RegisterEnum(nvtxDomainHandle_t domain) {
  static const nvtxPayloadEnum_t kEntries[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Maximum", 2, 0}};
  nvtxPayloadEnumAttr_t attributes{};
  attributes.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  attributes.name = "Operation";
  attributes.entries = kEntries;
  attributes.numEntries = 3;
  attributes.sizeOfEnum = sizeof(Operation);
  attributes.schemaId = kStaticEnum;
  nvtxPayloadEnumRegister(domain, &attributes);
  return kStaticEnum;
}

nvtxPayloadSchemaEntry_t Entry(uint64_t type, const char* name, size_t offset, uint64_t flags = 0,
                               uint64_t length = 0) {
  nvtxPayloadSchemaEntry_t entry{};
  entry.flags = flags;
  entry.type = type;
  entry.name = name;
  entry.arrayOrUnionDetail = length;
  entry.offset = offset;
  return entry;
}

nvtxPayloadSchemaAttr_t Schema(const char* name, uint64_t type,
                               const nvtxPayloadSchemaEntry_t* entries, size_t count,
                               size_t bytes) {
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.name = name;
  schema.type = type;
  schema.entries = entries;
  schema.numEntries = count;
  schema.payloadStaticSize = bytes;
  return schema;
}

uint64_t RegisterCollective(nvtxDomainHandle_t domain, uint64_t enumeration) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "communicator", offsetof(Collective, communicator)),
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "bytes", offsetof(Collective, bytes)),
      Entry(enumeration, "operation", offsetof(Collective, operation)),
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "shape", offsetof(Collective, shape),
            NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 3),
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "scale", offsetof(Collective, scale)),
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "seconds", offsetof(Collective, seconds)),
  };
  nvtxPayloadSchemaAttr_t schema =
      Schema("Collective", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 6, sizeof(Collective));
  schema.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.schemaId = kStaticSchema;
  nvtxPayloadSchemaRegister(domain, &schema);
  return kStaticSchema;
}

// An id of the tool's choice; 0 when there is no tool.
uint64_t RegisterNested(nvtxDomainHandle_t domain, uint64_t collective) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT64, "step", offsetof(Nested, step)),
      Entry(collective, "collective", offsetof(Nested, collective)),
  };
  nvtxPayloadSchemaAttr_t schema =
      Schema("Nested", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 2, sizeof(Nested));
  return nvtxPayloadSchemaRegister(domain, &schema);
}

// An array whose length is in the payload: the layout is dynamic.
uint64_t RegisterText(nvtxDomainHandle_t domain) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "length", 0),
      Entry(NVTX_PAYLOAD_ENTRY_TYPE_CHAR, "text", 0, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 0),
  };
  nvtxPayloadSchemaAttr_t schema = Schema("Text", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, entries, 2, 0);
  return nvtxPayloadSchemaRegister(domain, &schema);
}

void PushWithPayload(NvtxCounts& counts, nvtxDomainHandle_t domain, nvtxPayloadData_t* payload,
                     size_t count) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "with extended payload";
  attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  attributes.payload.ullValue = reinterpret_cast<uint64_t>(payload);
  attributes.reserved0 = static_cast<int32_t>(count);
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
  ++counts.push_pop;
  nvtxDomainMarkEx(domain, &attributes);
  ++counts.marks;
}

}  // namespace

void UsePayloads(NvtxCounts& counts, int round) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("payloads");
  uint64_t collective = RegisterCollective(domain, RegisterEnum(domain));
  uint64_t nested = RegisterNested(domain, collective), text = RegisterText(domain);
  Nested value{};
  value.step = round;
  value.collective = {0xabcdef, 4096, Operation::kMaximum, {2, 3, 4}, 0.5f, 1e-3};
  struct {
    uint32_t length;
    char text[5];
  } words = {5, {'h', 'e', 'l', 'l', 'o'}};
  nvtxPayloadData_t payloads[] = {
      {nested, sizeof value, &value},
      {collective, sizeof value.collective, &value.collective},
      {text, sizeof words.length + words.length, &words},
  };
  counts.enabled += nvtxDomainIsEnabled(domain) != 0;
  PushWithPayload(counts, domain, payloads, 3);
  nvtxMarkPayload(domain, payloads, 1);
  ++counts.marks;
  nvtxRangePushPayload(domain, payloads, 2);
  nvtxRangePopPayload(domain, payloads + 2, 1);
  ++counts.push_pop;
  nvtxRangeId_t range = nvtxRangeStartPayload(domain, payloads + 1, 1);
  nvtxRangeEndPayload(domain, range, payloads + 1, 1);
  ++counts.start_end;
  nvtxScopeAttr_t scope{};
  scope.structSize = sizeof scope;
  scope.path = "everything/scope";
  scope.parentScope = NVTX_SCOPE_ROOT;
  nvtxScopeRegister(domain, &scope);
  nvtxTimestampGet();
  nvtxDomainDestroy(domain);
}

void UseCounters(NvtxCounts& counts, int round) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("counters");
  nvtxCounterAttr_t attributes{};
  attributes.structSize = sizeof attributes;
  attributes.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
  attributes.name = "loss";
  attributes.description = "a counter";
  attributes.scopeId = NVTX_SCOPE_CURRENT_VM;
  uint64_t counter = nvtxCounterRegister(domain, &attributes);
  int64_t raw = round;
  nvtxCounterSampleInt64(domain, counter, 100 + round);
  nvtxCounterSampleFloat64(domain, counter, 0.5);
  nvtxCounterSample(domain, counter, &raw, sizeof raw);
  nvtxCounterSampleNoValue(domain, counter, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
  nvtxCounterBatch_t batch{};
  int64_t values[2] = {1, 2};
  batch.counterId = counter;
  batch.counters = values;
  batch.countersSize = sizeof values;
  nvtxCounterBatchSubmit(domain, &batch);
  counts.samples += 5;
  nvtxDomainDestroy(domain);
}
