// Whether communication is told apart into transfer and waiting.
#include "collector/report/claims/transfer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/rank_windows.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableUnknown = 0.25;  // of the time in collectives

// The time in collectives, added up over ranks.
struct Lengths {
  int64_t all = 0;
  int64_t alone = 0;       // one member was found
  int64_t incomplete = 0;  // several, but not the whole group
};

Lengths LengthsOf(const std::vector<CollectiveRun>& calls) {
  Lengths lengths;
  for (const CollectiveRun& call : calls) {
    int64_t ns = 0;
    for (const CollectiveMember& member : call.members) ns += member.length();
    lengths.all += ns;
    if (call.group_size == 1) continue;
    if (call.members.size() < 2) {
      lengths.alone += ns;
    } else if (call.members.size() < call.group_size) {
      lengths.incomplete += ns;
    }
  }
  return lengths;
}

// A run of one trace: every call has one member, so that none is matched.
Lengths LengthsOfOne(const Trace& trace) {
  Lengths lengths;
  for (const StreamWork& stream : WorkOfStreams(trace)) {
    lengths.all += stream.Of(WorkKind::kCommunication).ns;
  }
  lengths.alone = lengths.all;
  if (trace.collectives.empty()) return lengths;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    const bool is_alone =
        span.kind != WorkKind::kCommunication || GroupSizeOf(DescriptionOf(trace, span.row)) != 1;
    if (!is_alone) lengths.alone -= span.end - span.start;
  }
  return lengths;
}

bool Communicates(const Run& run) {
  return std::ranges::any_of(ComputeWaterfalls(run), [](const RankWaterfall& rank) {
    return rank.mean[static_cast<size_t>(Cause::kTransfer)] > 0;
  });
}

size_t CommunicatingDevices(const Trace& trace) {
  std::set<uint32_t> devices;
  for (const StreamWork& stream : WorkOfStreams(trace)) {
    if (stream.Of(WorkKind::kCommunication).pieces > 0) devices.insert(stream.device);
  }
  return devices.size();
}

}  // namespace

std::string MembersAreMissing(const Run& run) {
  const bool is_one = run.traces.size() == 1 && CommunicatingDevices(run.traces[0]) > 0;
  const Lengths lengths =
      is_one ? LengthsOfOne(run.traces[0]) : LengthsOf(MatchDeviceOrHostCollectives(run));
  if (lengths.all == 0 && Communicates(run)) return "nothing tells the groups of its calls";
  const int64_t unknown = lengths.alone + lengths.incomplete;
  if (static_cast<double>(unknown) <= kTolerableUnknown * static_cast<double>(lengths.all)) {
    return "";
  }
  std::set<uint32_t> ranks;
  for (uint32_t t = 0; t < run.traces.size(); ++t) ranks.insert(FirstOfRank(run, t));
  if (ranks.size() < 2) {
    return CommunicatingDevices(run.traces[0]) > 1
               ? "one process runs it on several devices, whose calls are not matched"
               : "the other ranks of its groups are not recorded";
  }
  if (lengths.incomplete > lengths.alone) return "some ranks of its groups are not recorded";
  return fmt::format("{} of it is in calls that cannot be matched across ranks",
                     FormatShare(unknown, lengths.all));
}

bool TellsWaiting(const Run& run) { return !RulingOn(run, Claim::kTransfer).is_undecided(); }

std::string_view SaidName(Cause cause, bool tells_waiting) {
  return cause == Cause::kTransfer && !tells_waiting ? "exposed communication" : NameOf(cause);
}

}  // namespace ranktap::collector
