// Checkpoints and indexes, taken apart piece by piece: protobuf makes an object of a hundred bytes
// out of a field of two, so that none of them is parsed whole. Thread-compatible.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ranktap/v1/kept.pb.h"
#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

// Most bytes of a checkpoint without its dictionary.
inline constexpr size_t kMaxCheckpointRest = 16u << 20;

// Splits a serialised v1.Checkpoint into its dictionary's bytes and the rest, parsed. The
// dictionary is by far the largest part, and is walked with ForEachEntry rather than built. False
// also where more is in it than a process can make a collector remember.
[[nodiscard]] bool ParseCheckpoint(std::span<const std::byte> bytes, v1::Checkpoint* rest,
                                   std::string* dictionary);

// What such a rest says of --keep.
v1::CheckpointOfKept KeptPartOf(const v1::Checkpoint& rest);

// Calls take(bytes) for each v1.BlockEntry of a serialised v1.Index. False when malformed.
using TakeBlockEntry = std::function<void(std::string_view bytes)>;
[[nodiscard]] bool ForEachBlockEntry(std::span<const std::byte> index, const TakeBlockEntry& take);

}  // namespace ranktap::collector
