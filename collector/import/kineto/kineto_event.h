// One event of a Chrome trace as torch.profiler (Kineto) writes it: views into the text, nothing
// copied.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

// The members of "args" that mean something to us.
enum class Arg : uint8_t {
  kExternalId,
  kCorrelation,
  kStream,
  kDevice,
  kContext,
  kBytes,
  kBandwidth,
  kGrid,
  kBlock,
  kRegisters,
  kSharedMemory,
  kPriority,
  kCbid,
  kGraphId,
  kGraphNodeId,
  kChannel,
  kRecordFunctionId,
  kSequence,
  kForwardThread,
  kShapes,
  kStrides,
  kTypes,
  kValues,
  kCallStack,
  kModuleHierarchy,
  kPythonId,
  kPythonParentId,
  kPythonModuleId,
  kAddress,
  kAllocationBytes,
  kDeviceType,
  kDeviceId,
  kTotalAllocated,
  kTotalReserved,
  kCollective,
  kInElements,
  kOutElements,
  kGroupSize,
  kDtype,
  kInSplit,
  kOutSplit,
  kGroupName,
  kGroupDescription,
  kGroupRanks,
  kCollectiveSequence,
  kCommunicator,
  kSourceRank,
  kDestinationRank,
  kSyncKind,
  kWaitOnStream,
  kWaitOnRecord,
  kWaitOnEvent,
  kFromDevice,
  kToDevice,
  kName,
  kLabels,
  kValue,
  kCount,
};

struct KinetoEvent {
  char phase = 0;  // 'X', 'i', 'M', 's', 'f', 'C', ...; 0: it has none
  bool has_ts = false, has_dur = false;
  int64_t ts_ns = 0, dur_ns = 0;
  // As they stand in the text: strings without quotes and with their escapes, numbers, or empty.
  std::string_view name, category, pid, tid, id;
  uint64_t known = 0;  // bits by Arg
  std::string_view args[static_cast<size_t>(Arg::kCount)];
  std::string_view all_args;  // the object with all of them, also those that mean nothing to us

  bool has(Arg arg) const { return (known >> static_cast<unsigned>(arg) & 1) != 0; }
  // The text of a member, strings without their quotes; empty where there is none.
  std::string_view text(Arg arg) const {
    return has(arg) ? args[static_cast<size_t>(arg)] : std::string_view();
  }
  uint64_t number(Arg arg, uint64_t otherwise = 0) const;
};
static_assert(static_cast<size_t>(Arg::kCount) <= 64);

struct EventText {
  enum class Status : uint8_t { kEvent, kMore, kMalformed };
  Status status = Status::kMalformed;
  const char* next = nullptr;  // after the event; where it is malformed: the place that is
};

// Takes the object that begins at `p` (a '{'). kMore: the text ends inside it. Members that are
// not of the expected type are as if absent.
EventText ScanEvent(const char* p, const char* end, KinetoEvent* event);

}  // namespace ranktap::collector
