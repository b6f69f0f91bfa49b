// What is known of the rank is the process's and only grows, so each test brings larger
// communicators.
#include "agent/sources/nvtx/nccl_rank.h"

#include <gtest/gtest.h>

#include <array>

#include "agent/sources/nvtx/nvtx_names.h"
#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

struct Payload {
  uint64_t communicator;
  int32_t ranks, rank;
};

class NcclRankTest : public Rings {
 protected:
  void SetUp() override { g_agent.names = arena_; }

  static nvtxDomainHandle_t Domain(const char* name) {
    return ToHandle<nvtxDomainHandle_t>(RegisterText(proto::EntryKind::kNvtxDomain, name));
  }
  static void Learn(nvtxDomainHandle_t domain, uint64_t id, const char* rank_field = "Rank") {
    const std::array<nvtxPayloadSchemaEntry_t, 3> entries{{
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", "", 0,
         offsetof(Payload, communicator), nullptr, nullptr},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", "", 0, offsetof(Payload, ranks), nullptr,
         nullptr},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, rank_field, "", 0, offsetof(Payload, rank), nullptr,
         nullptr},
    }};
    nvtxPayloadSchemaAttr_t schema{};
    schema.entries = entries.data();
    schema.numEntries = entries.size();
    LearnNcclSchema(domain, id, schema);
  }
  static void Note(uint64_t schema, const Payload& payload, size_t size = sizeof(Payload)) {
    const nvtxPayloadData_t data{schema, size, &payload};
    NoteNcclRank({&data, 1});
  }
  static std::pair<uint32_t, uint32_t> Known() {
    const auto told = RankInNccl();
    return told ? std::pair(told->rank, told->world_size) : std::pair(~0u, 0u);
  }
  static constexpr uint64_t kSchema = 1001;
};

TEST_F(NcclRankTest, TheRankOfTheLargestCommunicatorIsKnownAndOnlyNcclTellsIt) {
  Learn(Domain("Another"), 1000);
  Note(1000, {.communicator = 1, .ranks = 2, .rank = 1});
  EXPECT_EQ(RankInNccl(), std::nullopt) << "a domain that is not NCCL's";

  Learn(Domain("NCCL"), 1002, "Color");
  Note(1002, {.communicator = 1, .ranks = 2, .rank = 1});
  EXPECT_EQ(RankInNccl(), std::nullopt) << "a schema without a rank";

  Learn(Domain("NCCL"), kSchema);
  Note(kSchema, {.communicator = 1, .ranks = 2, .rank = 1}, sizeof(Payload) - 1);
  EXPECT_EQ(RankInNccl(), std::nullopt) << "a payload that is too short";
  for (const int32_t rank : {-1, 2}) Note(kSchema, {.communicator = 1, .ranks = 2, .rank = rank});
  EXPECT_EQ(RankInNccl(), std::nullopt) << "a rank that the communicator does not have";

  Note(kSchema, {.communicator = 1, .ranks = 2, .rank = 1});
  EXPECT_EQ(Known(), std::pair(1u, 2u));
  Note(kSchema, {.communicator = 2, .ranks = 8, .rank = 5});
  EXPECT_EQ(Known(), std::pair(5u, 8u)) << "a larger one";
  Note(kSchema, {.communicator = 3, .ranks = 4, .rank = 0});
  EXPECT_EQ(Known(), std::pair(5u, 8u)) << "a smaller one";
  Note(kSchema, {.communicator = 4, .ranks = 8, .rank = 6});
  EXPECT_EQ(Known(), std::pair(5u, 8u)) << "another of the same size";
}

TEST_F(NcclRankTest, AProcessThatIsSeveralRanksOfOneCommunicatorHasNone) {
  Learn(Domain("NCCL"), kSchema);
  Note(kSchema, {.communicator = 9, .ranks = 100, .rank = 3});
  EXPECT_EQ(Known(), std::pair(3u, 100u));
  Note(kSchema, {.communicator = 9, .ranks = 100, .rank = 4});
  EXPECT_EQ(RankInNccl(), std::nullopt);
}

}  // namespace
}  // namespace ranktap::agent
