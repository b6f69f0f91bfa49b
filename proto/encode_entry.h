// Arena entries -> protobuf payloads. Used by the agent's sender, and by the collector when it
// drains the rings of a process that died. Runs on: the sender thread; in the collector.  May not:
// be called on a user's thread (allocates).
#pragma once

#include <cstddef>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "proto/ring.h"

namespace ranktap::proto {

// The words of an entry of kind kStack: each frame's distance from the one before. Words that are
// cut off are left out.
std::vector<int64_t> StackDistances(std::span<const uint32_t> words);

// A whole message of a Dictionary frame (v1.DictionaryOfKept): entries of these kinds that were
// told before it are told again before an event that comes after it uses them.
inline constexpr std::string_view kToldAgainMessage = "\x50\x01";
inline constexpr EntryKind kToldAgain[] = {EntryKind::kString, EntryKind::kLaunchShape,
                                           EntryKind::kStack};

// Appends the arena entry to a v1.Dictionary under construction. False, and nothing is written, for
// an unknown kind or content too short for its kind.
[[nodiscard]] bool EncodeEntry(EntryKind kind, uint32_t id, std::span<const std::byte> content,
                               protozero::pbf_writer& dictionary);

}  // namespace ranktap::proto
