// The ranks of one job on one machine: how they are started, who they are, and how they add up
// their gradients (through shared memory: the program must not need NCCL).
#pragma once

namespace train {

struct Rank {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
};

// From RANK, LOCAL_RANK and WORLD_SIZE, as launchers set them. False when RANK is not set.
bool RankFromEnvironment(Rank* rank);

// Starts `count` copies of this program, rank by rank, and waits for them. The exit status of the
// job: 0, or 1 as soon as one rank has failed (the others are then stopped).
int RunRanks(int count, char** argv);

// Sums `values` over the ranks of RunRanks, in rank order, so that every rank has the same sum.
// Alone, or started by another launcher, a rank keeps what it has.
void SumOverRanks(const Rank& rank, float* values, int count);

}  // namespace train
