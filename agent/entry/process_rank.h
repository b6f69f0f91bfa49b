// The rank of this process: found at the start, and again when the program may have learnt more.
// Runs on: user threads inside hooks, and the sender where that is said.
// May not: block for long.
#pragma once

#include <cstdint>
#include <span>

#include "agent/core/rank_identity.h"

namespace ranktap::agent {

// `environ`. Only from a user's thread inside a hook, where no other thread of a sane program is
// changing it.
std::span<const char* const> EnvironmentNow();

// For the hello. Once, before the sender runs.
RankIdentity FindRankAtStart();

// Looks again, the environment included, and tells the collector when something changed. As
// EnvironmentNow.
void RefreshRankIdentity();

// Looks at what NCCL was given, never at the environment. Runs on: the sender.
void RefreshNcclRank();

// The rank that torch.distributed told the program; kept, and looked at by every refresh. Runs on:
// a user's thread inside a hook of ours in Python.
void TellRank(uint32_t rank, uint32_t world_size);

}  // namespace ranktap::agent
