// The rank that NCCL was given: its ranges of ncclCommInitRank and its kin carry it as a payload,
// also where NCCL is linked statically. Known for programs that no launcher's variable tells it.
// Runs on: user threads.  May not: allocate, lock, log, make a system call.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <optional>
#include <span>

#include "agent/core/rank_identity.h"

namespace ranktap::agent {

// Remembers where a schema of the domain "NCCL" has a communicator's rank and size, if it does.
void LearnNcclSchema(nvtxDomainHandle_t domain, uint64_t id, const nvtxPayloadSchemaAttr_t& schema);

// Takes the rank out of the payloads of one event, where they have one.
void NoteNcclRank(std::span<const nvtxPayloadData_t> payloads);

// The rank in the largest communicator so far; among equal ones, in the first. Nothing while there
// is none, and for a process that is several ranks of it. Any thread.
std::optional<ToldRank> RankInNccl();

}  // namespace ranktap::agent
