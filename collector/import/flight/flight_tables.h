// What a dump of the Flight Recorder says, whichever way it is written, into the model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/trace/group_calls.h"

namespace ranktap::collector {

struct FlightEntry {
  std::string group, description;
  std::string name;  // "nccl:all_reduce", "nccl:send 0->1"
  std::string in_sizes, out_sizes, in_types, out_types;
  std::string state;  // "scheduled", "started", "completed"
  uint64_t collective = 0, p2p = 0;
  int64_t entered_ns = 0;
  uint32_t stack = 0;
  bool is_p2p = false, is_retired = false;
};

// One thread.
class FlightTables {
 public:
  explicit FlightTables(Trace* trace) : trace_(trace) {}

  // `ranks` as the recorder writes them: "[0, 1, 2]".
  void AddGroup(std::string_view name, std::string_view description, std::string_view ranks);
  void AddEntry(const FlightEntry& entry);
  // Behind the last: works out which calls are open, and gives them to the trace.
  void Finish();

  uint32_t Intern(const std::string& text);

 private:
  uint32_t GroupNamed(std::string_view name, std::string_view description);
  void CloseCoalesced(const FlightEntry& end);
  void CloseEarlier();

  Trace* trace_;
  std::vector<GroupCall> calls_;
  std::map<std::pair<std::string, std::string>, uint32_t, std::less<>> groups_;
  std::unordered_map<std::string, uint32_t> texts_;
};

}  // namespace ranktap::collector
