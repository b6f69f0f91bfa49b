// Says to NVTX what NCCL says when communicators are made: without GPUs NCCL itself gets no further
// than the beginning of it. usage: nccl_ranks RANKS RANK COMMUNICATOR [RANKS RANK COMMUNICATOR ...]
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr uint64_t kSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 11;

// NCCL 2.28's NcclNvtxParamsCommInitRank.
struct CommInitRank {
  uint64_t communicator;
  int ranks, rank, device;
};

void Register(nvtxDomainHandle_t domain) {
  nvtxPayloadSchemaEntry_t entries[4]{};
  entries[0].type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
  entries[0].name = "NCCL communicator ID";
  const char* const names[] = {"No. of ranks", "Rank", "CUDA device"};
  const size_t offsets[] = {offsetof(CommInitRank, ranks), offsetof(CommInitRank, rank),
                            offsetof(CommInitRank, device)};
  for (int i = 0; i < 3; ++i) {
    entries[i + 1].type = NVTX_PAYLOAD_ENTRY_TYPE_INT;
    entries[i + 1].name = names[i];
    entries[i + 1].offset = offsets[i];
  }
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 4;
  schema.payloadStaticSize = sizeof(CommInitRank);
  schema.schemaId = kSchema;
  nvtxPayloadSchemaRegister(domain, &schema);
}

}  // namespace

int main(int argc, char** argv) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  Register(domain);
  for (int i = 1; i + 2 < argc; i += 3) {
    CommInitRank made{std::strtoull(argv[i + 2], nullptr, 16), std::atoi(argv[i]),
                      std::atoi(argv[i + 1]), 0};
    nvtxPayloadData_t payload{kSchema, sizeof made, &made};
    nvtxEventAttributes_t name{};
    name.version = NVTX_VERSION;
    name.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    name.messageType = NVTX_MESSAGE_TYPE_ASCII;
    name.message.ascii = "ncclCommInitRank";
    nvtxDomainRangePushEx(domain, &name);
    nvtxRangePopPayload(domain, &payload, 1);
  }
  std::printf("made %d communicators\n", (argc - 1) / 3);
  return 0;
}
