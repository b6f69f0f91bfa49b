// By the schemas that NCCL registers, not by its versions' layouts.
// Runs on: user threads.  May not: allocate, lock, log, make a system call.
#include "agent/sources/nvtx/nccl_rank.h"

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <string_view>

#include "agent/core/agent_state.h"
#include "agent/core/arena.h"
#include "agent/sources/nvtx/nvtx_names.h"

namespace ranktap::agent {
namespace {

constexpr uint32_t kNowhere = ~uint32_t{0};

struct Layout {
  uint32_t rank = kNowhere, ranks = kNowhere;
  uint32_t communicator = kNowhere;  // NCCL before 2.27 has none
  bool is_complete() const { return rank != kNowhere && ranks != kNowhere; }
};

// One for each of NCCL's functions that make or end a communicator. Append-only; a reader sees an
// id only after its layout.
struct KnownSchema {
  std::atomic<uint64_t> id;
  Layout layout;
};
constinit std::array<KnownSchema, 16> g_schemas{};
constinit std::atomic<uint32_t> g_schema_count{0};

// ranks << 40 | rank << 16 | 16 bits of the communicator's hash, so that one word is exchanged.
constexpr uint32_t kFieldLimit = 0xffffff;
constexpr uint32_t kSeveral = kFieldLimit;  // as a rank: this process is more than one
constinit std::atomic<uint64_t> g_largest{0};

struct Membership {
  uint32_t ranks, rank;
  uint16_t communicator;
};

uint64_t Pack(const Membership& at) {
  return uint64_t{at.ranks} << 40 | uint64_t{at.rank} << 16 | at.communicator;
}

Membership Unpack(uint64_t word) {
  return {static_cast<uint32_t>(word >> 40), static_cast<uint32_t>(word >> 16) & kFieldLimit,
          static_cast<uint16_t>(word)};
}

bool IsInt(uint64_t type) {
  return type == NVTX_PAYLOAD_ENTRY_TYPE_INT || type == NVTX_PAYLOAD_ENTRY_TYPE_INT32 ||
         type == NVTX_PAYLOAD_ENTRY_TYPE_UINT32;
}

Layout LayoutOf(const nvtxPayloadSchemaAttr_t& schema) {
  Layout layout;
  for (size_t i = 0; schema.entries != nullptr && i < schema.numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = schema.entries[i];
    // Offset 0 behind the first entry means: right behind the one before, which NCCL never uses.
    if (entry.name == nullptr || entry.offset >= kNowhere || (i > 0 && entry.offset == 0)) continue;
    const std::string_view name = entry.name;
    const auto offset = static_cast<uint32_t>(entry.offset);
    if (name == "Rank" && IsInt(entry.type)) layout.rank = offset;
    if (name == "No. of ranks" && IsInt(entry.type)) layout.ranks = offset;
    if (name == "NCCL communicator ID" && entry.type == NVTX_PAYLOAD_ENTRY_TYPE_UINT64) {
      layout.communicator = offset;
    }
  }
  return layout;
}

bool IsNccl(nvtxDomainHandle_t domain) {
  const proto::ArenaEntry* const entry = Names().Find(FromHandle(domain));
  if (entry == nullptr) return false;
  const auto name = Arena::ContentOf(*entry);
  constexpr std::string_view kName = "NCCL";
  return name.size() == kName.size() && std::memcmp(name.data(), kName.data(), kName.size()) == 0;
}

const Layout* LayoutFor(uint64_t schema) {
  const size_t count = std::min<size_t>(g_schema_count.load(), g_schemas.size());
  for (size_t i = 0; i < count; ++i) {
    if (g_schemas[i].id.load(std::memory_order_acquire) == schema) return &g_schemas[i].layout;
  }
  return nullptr;
}

template <typename T>
bool Read(const nvtxPayloadData_t& payload, uint32_t offset, T& value) {
  // A size of ~0 is the schema's own, which its entries fit.
  if (offset > payload.size || payload.size - offset < sizeof(value)) return false;
  std::memcpy(&value, static_cast<const std::byte*>(payload.payload) + offset, sizeof(value));
  return true;
}

// The membership that is known after `also` was seen.
Membership Larger(const Membership& known, const Membership& also) {
  if (also.ranks != known.ranks) return also.ranks > known.ranks ? also : known;
  const bool is_same = also.communicator == known.communicator;
  if (is_same && also.rank != known.rank) return {known.ranks, kSeveral, known.communicator};
  return known;
}

}  // namespace

void LearnNcclSchema(nvtxDomainHandle_t domain, uint64_t id,
                     const nvtxPayloadSchemaAttr_t& schema) {
  const Layout layout = LayoutOf(schema);
  if (!layout.is_complete() || !IsNccl(domain) || LayoutFor(id) != nullptr) return;
  const uint32_t index = g_schema_count.fetch_add(1);
  if (index >= g_schemas.size()) return;
  g_schemas[index].layout = layout;
  g_schemas[index].id.store(id, std::memory_order_release);
}

void NoteNcclRank(std::span<const nvtxPayloadData_t> payloads) {
  for (const nvtxPayloadData_t& payload : payloads) {
    const Layout* const layout = LayoutFor(payload.schemaId);
    if (layout == nullptr || payload.payload == nullptr) continue;
    int32_t rank = 0, ranks = 0;
    uint64_t communicator = 0;
    if (!Read(payload, layout->rank, rank) || !Read(payload, layout->ranks, ranks)) continue;
    if (layout->communicator != kNowhere) (void)Read(payload, layout->communicator, communicator);
    if (rank < 0 || rank >= ranks || ranks >= static_cast<int32_t>(kFieldLimit)) continue;
    const Membership seen{static_cast<uint32_t>(ranks), static_cast<uint32_t>(rank),
                          static_cast<uint16_t>(communicator ^ communicator >> 32)};
    uint64_t known = g_largest.load();
    while (!g_largest.compare_exchange_weak(known, Pack(Larger(Unpack(known), seen)))) {
    }
  }
}

std::optional<ToldRank> RankInNccl() {
  const Membership known = Unpack(g_largest.load());
  if (known.ranks == 0 || known.rank == kSeveral) return std::nullopt;
  return ToldRank{.rank = known.rank, .world_size = known.ranks};
}

}  // namespace ranktap::agent
