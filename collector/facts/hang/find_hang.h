// Which rank keeps the others waiting: rules over the calls that the ranks entered.
//
//   rank 0   AllReduce #5 of A (open)        0 waits for 2, which has not entered it
//   rank 1   AllReduce #5 of A (open)        1 waits for 2
//   rank 2   AllReduce #9 of B (open)        2 waits for 3
//   rank 3   nothing is open                 3 waits for nobody: all wait for it in the end
//
// Whoever is waited for and waits for nobody is the cause. Ranks that wait in a circle entered
// calls in different orders. A call that ranks make with different signatures comes before both.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/facts/hang/job_calls.h"

namespace ranktap::collector {

enum class HangCause : uint8_t {
  kOtherCall,       // `ranks` called another function than the rest as the same number of the group
  kOtherSignature,  // the same function with another size or type
  kNotEntered,      // `ranks` did not enter `call`
  kOtherOrder,      // `ranks` and others entered two calls in different orders
  kPeerElsewhere,   // ranks[0] sends to or receives from a rank that stands in another call
  kNoFile,          // `ranks` are waited for and gave no file: undecided
  kUnknownRanks,    // the call's group has ranks that no file tells: undecided
  kAllEntered,      // every rank entered `call` alike, and it did not end
};

// Ranks that stand in one call and wait there.
struct WaitingRanks {
  JobCall call;
  std::vector<uint32_t> ranks, awaited;
};

struct HangFinding {
  HangCause cause{};
  std::vector<uint32_t> ranks;  // ascending, but for kPeerElsewhere
  // False: there is no majority. `ranks` are all that take part, and none is guilty.
  bool is_guilty = true;
  JobCall call;  // as those have it who wait; of the majority
  // The same number as `ranks` have it, or the call that the first of them stands in.
  std::optional<JobCall> other_call;
  std::vector<uint32_t> waiting;      // stand in `call`
  std::vector<WaitingRanks> in_turn;  // wait for those, or for `ranks` in another call
  std::optional<JobCall> last_call;   // of ranks[0], where nothing of it is open
  size_t others = 0;                  // kOtherCall, kOtherSignature: who entered it as `call` is
  bool left_out = false;              // kOtherCall: from here on `ranks` are one call behind
  bool has_ended = false;             // a signature that differs in a call that ended all the same
};

// The likeliest cause first. Empty: no call is open, and none differs.
std::vector<HangFinding> FindHang(const JobCalls& job);

}  // namespace ranktap::collector
