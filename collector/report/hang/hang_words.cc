#include "collector/report/hang/hang_words.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/file/hang_notes.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr size_t kRanksNamed = 8, kCallsInTurn = 3;

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string FunctionName(std::string_view function) {
  const std::string name = CollectiveWord(function);
  return name.empty() ? "an unnamed call" : name;
}

// Elements of "[[1024, 2], [8]]"; 0: nothing is told, or more than fits.
uint64_t ElementsIn(std::string_view sizes) {
  uint64_t sum = 0, product = 1, dims = 0;
  bool fits = true, in_list = false;
  for (size_t i = 1; i + 1 < sizes.size(); ++i) {
    const char c = sizes[i];
    if (c == '[') {
      product = 1, dims = 0, in_list = true;
    } else if (c == ']' && in_list) {
      fits &= !__builtin_add_overflow(sum, dims == 0 ? 1 : product, &sum);
      in_list = false;
    } else if (c >= '0' && c <= '9') {
      uint64_t dim = 0;
      const char* const first = sizes.data() + i;
      const auto [stop, failed] = std::from_chars(first, sizes.data() + sizes.size(), dim);
      fits &= failed == std::errc() && !__builtin_mul_overflow(product, dim, &product);
      i += static_cast<size_t>(stop - first) - 1;
      ++dims;
    }
  }
  return fits ? sum : 0;
}

std::string SizeText(const JobCall& call) {
  if (call.bytes != 0) return FormatBytes(call.bytes);
  const uint64_t elements = std::max(ElementsIn(call.in_sizes), ElementsIn(call.out_sizes));
  const std::string_view type = call.in_types.empty() ? call.out_types : call.in_types;
  const auto bytes = static_cast<uint64_t>(BytesPerElement(type.substr(0, type.find(','))));
  uint64_t all = 0;
  if (elements == 0 || bytes == 0 || __builtin_mul_overflow(elements, bytes, &all)) return "";
  return FormatBytes(all);
}

std::string LineOf(const JobCall& call) { return std::string(ProgramLineOf(call.stack)); }
std::string AtLine(const JobCall& call) {
  const std::string line = LineOf(call);
  return line.empty() ? "" : " at " + line;
}

// "10:31:45 UTC"
std::string Clock(int64_t ns) {
  const time_t seconds = ns / 1'000'000'000;
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, ::strftime(text, sizeof text, "%H:%M:%S UTC", &utc)};
}

std::string_view Verb(size_t count, std::string_view one, std::string_view many) {
  return count == 1 ? one : many;
}
std::string_view Its(const std::vector<uint32_t>& ranks) {
  return ranks.size() == 1 ? "its" : "their";
}

// "15 of 16 wait since 10:31:45 UTC"
std::string WaitingText(const JobCalls& job, const HangFinding& finding) {
  const JobGroup& group = job.groups[finding.call.group];
  const size_t count = finding.waiting.size();
  std::string who = RankNames(finding.waiting);
  if (group.has_all_ranks && count > 1) who = fmt::format("{} of {}", count, group.ranks.size());
  std::string text = fmt::format("{} {}", who, Verb(count, "waits", "wait"));
  if (finding.call.entered_ns > 0) text += " since " + Clock(finding.call.entered_ns);
  return text;
}

// "rank 1 stands in AllReduce #4 (group odds) for rank 3"
std::string InTurnText(const JobCalls& job, const HangFinding& finding) {
  std::string text;
  for (size_t i = 0; i < std::min(finding.in_turn.size(), kCallsInTurn); ++i) {
    const WaitingRanks& here = finding.in_turn[i];
    text += fmt::format("{}{} {} in {} for {}", text.empty() ? "" : "; ", RankNames(here.ranks),
                        Verb(here.ranks.size(), "stands", "stand"), CallName(job, here.call),
                        RankNames(here.awaited));
  }
  if (text.empty()) return text;
  const size_t more = finding.in_turn.size() - std::min(finding.in_turn.size(), kCallsInTurn);
  return fmt::format(" In turn, {}{}.", text,
                     more == 0 ? "" : fmt::format("; and so on in {} more calls", more));
}

std::string WhereItIs(const JobCalls& job, const HangFinding& finding) {
  const std::string who =
      finding.ranks.size() == 1 ? "It" : Capitalized(RankNames({finding.ranks.front()}));
  if (finding.other_call) {
    const bool knows = job.groups[finding.other_call->group].has_all_ranks;
    return fmt::format(" {} stands in {}{}{}.", who, CallName(job, *finding.other_call),
                       AtLine(*finding.other_call),
                       knows ? "" : "; no file tells which ranks that group has");
  }
  if (!finding.last_call) return fmt::format(" {} entered no call at all.", who);
  return fmt::format(" {} last entered {}{}, which ended.", who, CallName(job, *finding.last_call),
                     AtLine(*finding.last_call));
}

std::string DescribeMissing(const JobCalls& job, const HangFinding& finding) {
  const JobCall& call = finding.call;
  std::string what = CallName(job, call);
  if (call.is_send) what = fmt::format("a recv for rank {}'s {}", finding.waiting.front(), what);
  if (call.is_recv) what = fmt::format("a send for rank {}'s {}", finding.waiting.front(), what);
  return fmt::format("{} did not enter {}; {}.{}{}", Capitalized(RankNames(finding.ranks)), what,
                     WaitingText(job, finding), WhereItIs(job, finding), InTurnText(job, finding));
}

std::string Tensors(const JobCall& call) {
  const std::string_view sizes = call.in_sizes.empty() ? call.out_sizes : call.in_sizes;
  const std::string_view types = call.in_types.empty() ? call.out_types : call.in_types;
  if (call.bytes != 0) return FormatBytes(call.bytes);
  if (sizes.empty() && types.empty()) return "no tensor";
  return fmt::format("{} {}", types, sizes);
}

// "the 3 others"; of two ranks there is no majority.
std::string TheOthers(const HangFinding& finding) {
  return finding.others < 2 ? "the others" : fmt::format("the {} others", finding.others);
}

constexpr std::string_view kNeither =
    " No side has a majority, so that neither is named as the cause.";

std::string DescribeUnlike(const JobCalls& job, const HangFinding& finding) {
  const JobCall &usual = finding.call, &other = *finding.other_call;
  const std::string group = GroupName(job.groups[usual.group]);
  std::string text;
  const std::string who = Capitalized(RankNames(finding.ranks));
  if (finding.cause == HangCause::kOtherCall && finding.is_guilty) {
    text = fmt::format("{} called {} as #{} of {}{}, where {} called {}{}.", who,
                       FunctionName(other.function), other.number, group, AtLine(other),
                       TheOthers(finding), FunctionName(usual.function), AtLine(usual));
    if (finding.left_out) {
      text +=
          fmt::format(" From there on {} calls are one behind: {} left out {}.", Its(finding.ranks),
                      RankNames(finding.ranks), FunctionName(usual.function));
    }
  } else if (finding.cause == HangCause::kOtherCall) {
    text = fmt::format("{} called different functions as #{} of {}: {}{}, and {}{}.{}", who,
                       usual.number, group, FunctionName(usual.function), AtLine(usual),
                       FunctionName(other.function), AtLine(other), kNeither);
  } else if (finding.is_guilty) {
    text = fmt::format("{} entered {} with {}{}, where {} had {}.", who, CallName(job, usual),
                       Tensors(other), AtLine(other), TheOthers(finding), Tensors(usual));
  } else {
    text = fmt::format("{} entered {} with different tensors: {}{}, and {}{}.{}", who,
                       CallName(job, usual), Tensors(usual), AtLine(usual), Tensors(other),
                       AtLine(other), kNeither);
  }
  if (finding.has_ended) text += " The call ended all the same.";
  return text + InTurnText(job, finding);
}

std::string DescribeOrder(const JobCalls& job, const HangFinding& finding) {
  const std::string first = CallName(job, finding.call) + AtLine(finding.call);
  const std::string other = CallName(job, *finding.other_call) + AtLine(*finding.other_call);
  if (finding.is_guilty) {
    return fmt::format(
        "{} entered {} before {}, and {} the other way round: each waits for the "
        "other.{}",
        Capitalized(RankNames(finding.ranks)), other, first, RankNames(finding.waiting),
        InTurnText(job, finding));
  }
  return fmt::format("{} wait for each other in a circle: some stand in {}, others in {}.{}{}",
                     Capitalized(RankNames(finding.ranks)), first, other, kNeither,
                     InTurnText(job, finding));
}

std::string DescribePeer(const JobCalls& job, const HangFinding& finding) {
  return fmt::format(
      "Rank {} {} rank {}{}, and rank {} stands in {}{}: each waits for the other.{}",
      finding.ranks[0], finding.call.is_send ? "sends to" : "receives from",
      finding.call.peer.value_or(finding.ranks[1]), AtLine(finding.call), finding.ranks[1],
      CallName(job, *finding.other_call), AtLine(*finding.other_call), InTurnText(job, finding));
}

}  // namespace

std::string_view NameOf(HangCause cause) {
  constexpr std::string_view kNames[] = {"other call",    "other signature", "not entered",
                                         "other order",   "peer elsewhere",  "no file",
                                         "unknown ranks", "all entered"};
  return kNames[static_cast<size_t>(cause)];
}

std::string GroupName(const JobGroup& group) {
  const std::string& description = group.description;
  const bool has_none = description.empty() || description == "undefined";
  return "group " + (has_none ? group.name : description);
}

std::string CallName(const JobCalls& job, const JobCall& call) {
  const std::string size = SizeText(call);
  return fmt::format("{} #{} ({}{})", FunctionName(call.function), call.number,
                     size.empty() ? "" : size + ", ", GroupName(job.groups[call.group]));
}

std::string RankNames(const std::vector<uint32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::string text = "ranks ";
  const size_t named = std::min(ranks.size(), kRanksNamed);
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == ranks.size();
    text += fmt::format("{}{}", i == 0 ? "" : (is_last ? " and " : ", "), ranks[i]);
  }
  if (ranks.size() > named) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

std::string DescribeHang(const JobCalls& job, const HangFinding& finding) {
  switch (finding.cause) {
    case HangCause::kOtherCall:
    case HangCause::kOtherSignature:
      return DescribeUnlike(job, finding);
    case HangCause::kNotEntered:
      return DescribeMissing(job, finding);
    case HangCause::kOtherOrder:
      return DescribeOrder(job, finding);
    case HangCause::kPeerElsewhere:
      return DescribePeer(job, finding);
    case HangCause::kNoFile:
      return fmt::format("Undecided: in {} {}, for {}, of which there is no complete record.{}",
                         CallName(job, finding.call), WaitingText(job, finding),
                         RankNames(finding.ranks), InTurnText(job, finding));
    case HangCause::kUnknownRanks:
      return fmt::format("Undecided: {} {} in {}{}, and no file tells which ranks that group has.",
                         RankNames(finding.ranks), Verb(finding.ranks.size(), "stands", "stand"),
                         CallName(job, finding.call), AtLine(finding.call));
    case HangCause::kAllEntered:
      return fmt::format("Every rank of {} entered {} alike, and {}.",
                         GroupName(job.groups[finding.call.group]), CallName(job, finding.call),
                         WaitingText(job, finding));
  }
  return "";
}

std::string HangAdvice(const HangFinding& finding) {
  const std::string line = finding.other_call  ? LineOf(*finding.other_call)
                           : finding.last_call ? LineOf(*finding.last_call)
                                               : "";
  const std::string who = finding.ranks.empty() ? "" : RankNames({finding.ranks.front()});
  switch (finding.cause) {
    case HangCause::kOtherCall:
    case HangCause::kOtherSignature:
      return "Let every rank of the group make this call alike: look for a branch on the rank, for "
             "an uneven last batch, for tensors whose shape depends on the data.";
    case HangCause::kNotEntered:
      return fmt::format(
          "Find where {} is: {}. While it still runs, py-spy dump --pid PID shows "
          "its stack; look for a branch on the rank, a swallowed exception, a read "
          "that blocks, a dead DataLoader worker.",
          who,
          line.empty() ? "dumps with stacks would name its last line" : "read on from " + line);
    case HangCause::kOtherOrder:
      return "Call the groups in one order on every rank; with async_op=True the order of the "
             "calls "
             "counts, not that of the waits.";
    case HangCause::kPeerElsewhere:
      return "Give each send its recv before either side enters a collective; "
             "torch.distributed.batch_isend_irecv issues both at once.";
    case HangCause::kNoFile:
      return fmt::format(
          "Add the files of {}. If a rank of them ended, its log names the cause: the "
          "others only wait.",
          RankNames(finding.ranks));
    case HangCause::kUnknownRanks:
      return "Give the files of all ranks; NCCL's recorder tells the ranks of each group, gloo's "
             "does not.";
    case HangCause::kAllEntered:
      return "Suspect the network or a device: ask NCCL's RAS (port 28028 of a node), and look for "
             "XID and link errors. Files written while the call ran look the same.";
  }
  return "";
}

}  // namespace ranktap::collector
