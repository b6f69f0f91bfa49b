#include "collector/import/kineto/kineto_event.h"

#include <array>
#include <cstring>

#include "collector/import/json_scan.h"

namespace ranktap::collector {
namespace {

struct ArgName {
  std::string_view name;
  Arg arg;
};

constexpr ArgName kArgNames[] = {
    {"External id", Arg::kExternalId},
    {"external id", Arg::kExternalId},
    {"correlation", Arg::kCorrelation},
    {"stream", Arg::kStream},
    {"device", Arg::kDevice},
    {"context", Arg::kContext},
    {"bytes", Arg::kBytes},
    {"memory bandwidth (GB/s)", Arg::kBandwidth},
    {"grid", Arg::kGrid},
    {"block", Arg::kBlock},
    {"registers per thread", Arg::kRegisters},
    {"shared memory", Arg::kSharedMemory},
    {"priority", Arg::kPriority},
    {"cbid", Arg::kCbid},
    {"graph id", Arg::kGraphId},
    {"graph node id", Arg::kGraphNodeId},
    {"channel", Arg::kChannel},
    {"Record function id", Arg::kRecordFunctionId},
    {"Sequence number", Arg::kSequence},
    {"Fwd thread id", Arg::kForwardThread},
    {"Input Dims", Arg::kShapes},
    {"Input dims", Arg::kShapes},
    {"Input Strides", Arg::kStrides},
    {"Input type", Arg::kTypes},
    {"Concrete Inputs", Arg::kValues},
    {"Call stack", Arg::kCallStack},
    {"Module Hierarchy", Arg::kModuleHierarchy},
    {"Python id", Arg::kPythonId},
    {"Python parent id", Arg::kPythonParentId},
    {"Python module id", Arg::kPythonModuleId},
    {"Addr", Arg::kAddress},
    {"Bytes", Arg::kAllocationBytes},
    {"Device Type", Arg::kDeviceType},
    {"Device Id", Arg::kDeviceId},
    {"Total Allocated", Arg::kTotalAllocated},
    {"Total Reserved", Arg::kTotalReserved},
    {"Collective name", Arg::kCollective},
    {"In msg nelems", Arg::kInElements},
    {"In msg size", Arg::kInElements},
    {"Out msg nelems", Arg::kOutElements},
    {"Out msg size", Arg::kOutElements},
    {"Group size", Arg::kGroupSize},
    {"dtype", Arg::kDtype},
    {"In split size", Arg::kInSplit},
    {"Out split size", Arg::kOutSplit},
    {"Process Group Name", Arg::kGroupName},
    {"Process Group ID", Arg::kGroupName},
    {"Process Group Description", Arg::kGroupDescription},
    {"Process Group Ranks", Arg::kGroupRanks},
    {"Seq", Arg::kCollectiveSequence},
    {"Comms Id", Arg::kCommunicator},
    {"Src Rank", Arg::kSourceRank},
    {"Dst Rank", Arg::kDestinationRank},
    {"cuda_sync_kind", Arg::kSyncKind},
    {"wait_on_stream", Arg::kWaitOnStream},
    {"wait_on_cuda_event_record_corr_id", Arg::kWaitOnRecord},
    {"wait_on_cuda_event_id", Arg::kWaitOnEvent},
    {"fromDevice", Arg::kFromDevice},
    {"toDevice", Arg::kToDevice},
    {"name", Arg::kName},
    {"labels", Arg::kLabels},
    {"", Arg::kValue},
    {"value", Arg::kValue},
};

// Names by a hash of length, first and last byte; each slot is a chain.
class ArgTable {
 public:
  ArgTable() {
    first_.fill(kNothing);
    // NOLINTNEXTLINE(bugprone-too-small-loop-variable): there are fewer than kNothing
    for (uint8_t i = 0; i < std::size(kArgNames); ++i) {
      uint8_t& slot = first_[Slot(kArgNames[i].name)];
      next_[i] = slot;
      slot = i;
    }
  }
  Arg Find(std::string_view name) const {
    for (uint8_t i = first_[Slot(name)]; i != kNothing; i = next_[i]) {
      if (kArgNames[i].name == name) return kArgNames[i].arg;
    }
    return Arg::kCount;
  }

 private:
  static constexpr uint8_t kNothing = 0xff;
  static size_t Slot(std::string_view name) {
    if (name.empty()) return 0;
    return (name.size() * 29 + static_cast<uint8_t>(name.front()) * 5 +
            static_cast<uint8_t>(name.back())) %
           256;
  }
  std::array<uint8_t, 256> first_;
  std::array<uint8_t, std::size(kArgNames)> next_{};
};
const ArgTable kArgTable;

std::string_view Bare(const char* start, const char* end) {
  if (*start == '"' && end - start >= 2) return {start + 1, static_cast<size_t>(end - start - 2)};
  return {start, static_cast<size_t>(end - start)};
}

class Scanner {
 public:
  Scanner(const char* end, KinetoEvent* event) : end_(end), event_(event) {}

  // `p` is at '{'. Calls member(key, value text) for each; nullptr: malformed or cut off.
  template <typename Member>
  const char* Object(const char* p, Member&& member) {
    p = SkipSpace(p + 1);
    if (*p == '}') return p + 1;
    while (true) {
      p = SkipSpace(p);
      if (*p == '}') return p + 1;  // after a trailing comma
      if (*p != '"') return Fail(p);
      const char* const key = p + 1;
      const char* const key_end = StringEnd(key, end_);
      if (key_end == nullptr) return Fail(end_);
      p = SkipSpace(key_end + 1);
      if (*p != ':') return Fail(p);
      p = SkipSpace(p + 1);
      p = member(std::string_view(key, static_cast<size_t>(key_end - key)), p);
      if (p == nullptr) return nullptr;
      p = SkipSpace(p);
      if (*p == '}') return p + 1;
      if (*p != ',') return Fail(p);
      ++p;
    }
  }

  const char* Event(const char* p) {
    return Object(p, [this](std::string_view key, const char* value) {
      if (key == "args" && *value == '{') {
        const char* const end = Args(value);
        if (end != nullptr) event_->all_args = {value, static_cast<size_t>(end - value)};
        return end;
      }
      const char* const after = Value(value);
      if (after != nullptr) Take(key, Bare(value, after));
      return after;
    });
  }
  const char* failed() const { return failed_; }

 private:
  const char* Fail(const char* at) {
    failed_ = at;
    return nullptr;
  }
  const char* Value(const char* p) {
    const char* const after = SkipValue(p, end_);
    return after == nullptr ? Fail(*p == '"' || *p == '{' || *p == '[' ? end_ : EndOfScalar(p))
                            : after;
  }
  // A scalar that reaches the end of the text may go on in the next piece of it.
  const char* EndOfScalar(const char* p) {
    while (p < end_ && std::strchr(",}] \n\r\t\":{[", *p) == nullptr) ++p;
    return p;
  }
  const char* Args(const char* p) {
    return Object(p, [this](std::string_view key, const char* value) {
      const char* const after = Value(value);
      if (after == nullptr) return after;
      const Arg arg = kArgTable.Find(key);
      if (arg != Arg::kCount) {
        event_->known |= uint64_t{1} << static_cast<unsigned>(arg);
        event_->args[static_cast<size_t>(arg)] = Bare(value, after);
      }
      return after;
    });
  }
  void Take(std::string_view key, std::string_view value) {
    switch (key.size()) {
      case 2:
        if (key == "ph" && value.size() == 1) event_->phase = value[0];
        if (key == "ts") event_->has_ts = ParseMicroseconds(value, &event_->ts_ns);
        if (key == "id") event_->id = value;
        return;
      case 3:
        if (key == "cat") event_->category = value;
        if (key == "pid") event_->pid = value;
        if (key == "tid") event_->tid = value;
        if (key == "dur") event_->has_dur = ParseMicroseconds(value, &event_->dur_ns);
        return;
      case 4:
        if (key == "name") event_->name = value;
        return;
      default:
        return;
    }
  }

  const char* end_;
  KinetoEvent* event_;
  const char* failed_ = nullptr;
};

}  // namespace

uint64_t KinetoEvent::number(Arg arg, uint64_t otherwise) const {
  uint64_t value = 0;
  return has(arg) && ParseUnsigned(args[static_cast<size_t>(arg)], &value) ? value : otherwise;
}

EventText ScanEvent(const char* p, const char* end, KinetoEvent* event) {
  event->phase = 0;
  event->has_ts = event->has_dur = false;
  event->ts_ns = event->dur_ns = 0;
  event->name = event->category = event->pid = event->tid = event->id = {};
  event->all_args = {};
  event->known = 0;
  Scanner scanner(end, event);
  const char* const after = scanner.Event(p);
  if (after != nullptr) return {EventText::Status::kEvent, after};
  if (scanner.failed() >= end) return {EventText::Status::kMore, end};
  return {EventText::Status::kMalformed, scanner.failed()};
}

}  // namespace ranktap::collector
