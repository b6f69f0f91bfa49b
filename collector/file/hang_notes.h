// What the collector's hang watch wrote into a run: hang-TIME/hang.json of each hang.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// What the calls of all ranks say, as PyTorch's Flight Recorder had them.
struct HangCalls {
  std::string cause, ranks, finding, advice;  // as a row of `report hang`
  bool is_guilty = false;
  uint32_t waiting = 0;  // how many ranks
};

struct HangNote {
  std::string directory;  // its path
  std::string sentence, advice, cause;
  uint64_t realtime_ns = 0;
  std::vector<uint32_t> waiting, awaited;
  std::optional<HangCalls> calls;
  // Its ranks are the cause; else they only take part, or work for long.
  bool is_guilty() const { return cause == "ended" || cause == "stopped" || cause == "stuck"; }
};

// Of the run in this folder, the last one first. What is no such file is left out.
std::vector<HangNote> ReadHangNotes(const std::string& run);

// How sentences about hangs call a collective: "all_reduce" is "AllReduce", "_allgather_base" is
// "AllgatherBase".
std::string CollectiveWord(std::string_view function);

}  // namespace ranktap::collector
