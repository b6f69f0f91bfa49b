// Communication that nothing computes behind, and two of its reasons: the stream it runs on, and
// how small its pieces are.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/collective_types.h"
#include "collector/facts/collectives.h"
#include "collector/facts/stream_numbers.h"
#include "collector/report/claims/claim.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// A share of the compute time: streams of communication run small kernels of their own (casts,
// reductions).
constexpr double kComputeStreamShare = 0.2;
constexpr double kLeastExposedShare = 0.01;  // of the step, exposed: as the verdict's
constexpr double kLeastExposed = 0.05;       // of the step

// NCCL reaches half of its bandwidth between 1 and 16 MB; below 256 KiB latency is most of it.
constexpr int64_t kSmallBytes = 256 << 10;
constexpr double kLeastSmallPerStep = 20;
constexpr double kLeastSmallShare = 0.02;   // of the step, exposed
constexpr int64_t kBucketBytes = 25 << 20;  // DistributedDataParallel's bucket_cap_mb

using CommunicationStream = std::pair<uint32_t, uint32_t>;  // device, stream

struct StreamUse {
  int64_t compute_ns = 0, collectives = 0;
};

struct Streams {
  std::map<CommunicationStream, StreamUse> by_stream;
  int64_t compute_ns = 0;  // of all
  bool IsForCompute(const CommunicationStream& stream) const {
    const auto found = by_stream.find(stream);
    return found != by_stream.end() && compute_ns > 0 &&
           static_cast<double>(found->second.compute_ns) >=
               kComputeStreamShare * static_cast<double>(compute_ns);
  }
};

// Mostly asked of the same again.
class ComputeStreams {
 public:
  explicit ComputeStreams(const Streams& streams) : streams_(streams) {}
  bool Holds(const CommunicationStream& stream) {
    if (!asked_ || asked_->first != stream) asked_ = {stream, streams_.IsForCompute(stream)};
    return asked_->second;
  }

 private:
  const Streams& streams_;
  std::optional<std::pair<CommunicationStream, bool>> asked_;
};

Streams FindUseOfStreams(const RankFacts& rank) {
  Streams streams;
  StreamNumbers numbers;
  std::vector<StreamUse*> by_number;
  SetCursor counted(rank.counted());
  for (const DeviceSpan& span : rank.spans()) {
    if (!counted.Holds(span.start)) continue;
    const uint32_t number = numbers.Of(span);
    if (number == by_number.size()) by_number.push_back(&streams.by_stream[numbers[number]]);
    StreamUse& use = *by_number[number];
    if (span.kind == WorkKind::kCommunication) ++use.collectives;
    if (span.kind != WorkKind::kCompute) continue;
    use.compute_ns += span.end - span.start;
    streams.compute_ns += span.end - span.start;
  }
  return streams;
}

const Streams& UseOfStreams(const RankFacts& rank) {
  return rank.Get<Streams>([&rank] { return FindUseOfStreams(rank); });
}

// What a rank could compute while it communicates: what it does not compute meanwhile already.
int64_t ComputeToHideBehind(const RankFacts& rank) {
  return rank.PerStep(rank.TimeAlone(WorkKind::kCompute, WorkKind::kCommunication));
}

struct Exposed {
  std::vector<Interval> moments;
  int64_t ns = 0;
  std::vector<std::pair<uint32_t, int64_t>> by_span;  // by the span's index
};

// Transfers that nothing computes behind, of those `picks` holds for.
template <typename Picks>
Exposed ExposedTransfers(const RankFacts& rank, Picks&& picks) {
  Exposed exposed;
  const DeviceSpans& spans = rank.spans();
  exposed.by_span.reserve(rank.lost(Cause::kTransfer).size());
  exposed.moments.reserve(rank.lost(Cause::kTransfer).size());
  for (const LostPiece& piece : rank.lost(Cause::kTransfer)) {
    if (piece.span == kNone) continue;
    if (!picks(spans[piece.span])) continue;
    exposed.ns += piece.length();
    if (!exposed.by_span.empty() && exposed.by_span.back().first == piece.span) {
      exposed.by_span.back().second += piece.length();
    } else {
      exposed.by_span.emplace_back(piece.span, piece.length());
    }
    exposed.moments.emplace_back(piece.start, piece.end);
  }
  auto& list = exposed.by_span;
  if (!std::ranges::is_sorted(list, {}, &std::pair<uint32_t, int64_t>::first)) {
    std::ranges::stable_sort(list, {}, &std::pair<uint32_t, int64_t>::first);
  }
  size_t kept = 0;
  for (const auto& [span, ns] : list) {
    if (kept > 0 && list[kept - 1].first == span) {
      list[kept - 1].second += ns;
    } else {
      list[kept++] = {span, ns};
    }
  }
  list.resize(kept);
  return exposed;
}

Saving SavingOf(int64_t compute_to_hide_behind, Exposed exposed) {
  return {.moments = std::move(exposed.moments),
          .causes = BitOf(Cause::kTransfer),
          .most_ns = compute_to_hide_behind};
}

// The name of the kernel with most of the time.
std::string MostExposed(const RankFacts& rank, const Exposed& exposed) {
  std::map<uint32_t, int64_t> by_name;
  std::pair<const uint32_t, int64_t>* last = nullptr;
  const DeviceSpans& spans = rank.spans();
  for (const auto& [span, ns] : exposed.by_span) {
    const uint32_t name = spans[span].name;
    if (last == nullptr || last->first != name) last = &*by_name.try_emplace(name, 0).first;
    last->second += ns;
  }
  const auto most =
      std::ranges::max_element(by_name, {}, [](const auto& entry) { return entry.second; });
  const auto of_name = std::ranges::find_if(
      exposed.by_span, [&](const auto& entry) { return spans[entry.first].name == most->first; });
  return NameOf(rank.trace(), spans[of_name->first]);
}

// What helps against exposed collectives of one type, as CollectiveRun::type() names it.
std::string_view AdviceOnCollective(std::string_view type) {
  if (type == "allreduce") {
    return "Start all-reduces as gradients are ready: DistributedDataParallel's buckets overlap "
           "them with the backward pass; of activations, asynchronous tensor parallelism.";
  }
  if (type == "allgather" || type == "reducescatter") {
    return "Prefetch: FSDP's forward_prefetch, backward_prefetch and limit_all_gathers, "
           "DeepSpeed's "
           "stage3_prefetch_bucket_size, or larger shards.";
  }
  if (type == "alltoall") {
    return "Send the tokens of experts in chunks, so that one chunk computes while the next is on "
           "its way, or compute shared experts meanwhile; keep experts within a node.";
  }
  if (type == "send" || type == "recv" || type == "sendrecv") {
    return "Give the pipeline more micro-batches or an interleaved schedule, and post receives "
           "(irecv, batch_isend_irecv) before the work that hides them.";
  }
  if (type == "broadcast" || type == "gather" || type == "scatter" || type == "reduce") {
    return "Do it once before the loop, less often, or asynchronously (async_op=True).";
  }
  return type == "barrier" ? "Leave the barrier out of the loop." : "";
}

// The type of the collectives that are most of it; empty: not known.
std::string MostExposedType(const RankFacts& rank, const Exposed& exposed) {
  const Trace& trace = rank.trace();
  // What says the type: one text for all that are alike.
  using Said = std::tuple<const Collective*, uint32_t, std::string_view>;
  struct OfType {
    uint32_t span = 0;  // one of them
    int64_t ns = 0;
  };
  std::map<Said, OfType> alike;
  std::pair<const Said, OfType>* last = nullptr;
  for (const auto& [span, ns] : exposed.by_span) {
    const DeviceSpan& work = rank.spans()[span];
    const Said said = {DescriptionOf(trace, work.row), work.name,
                       OperatorThatCommunicates(trace, work.row)};
    if (last == nullptr || last->first != said)
      last = &*alike.try_emplace(said, OfType{span}).first;
    last->second.ns += ns;
  }
  std::map<std::string, int64_t> by_type;
  for (const auto& [said, of] : alike) {
    by_type[TypeOfCollective(trace, rank.spans()[of.span])] += of.ns;
  }
  const auto most =
      std::ranges::max_element(by_type, {}, [](const auto& entry) { return entry.second; });
  return most == by_type.end() ? "" : most->first;
}

// "communication transfers"; where that is undecided, no word of transfers.
std::string DescribeExposed(const RankFacts& rank) {
  const Ruling& ruling = RulingOn(rank.run(), Claim::kTransfer);
  if (!ruling.is_undecided()) return "communication transfers";
  return fmt::format("exposed communication runs (how much of it waits is undecided: {})",
                     ruling.why);
}

constexpr std::string_view kNoCommunication = "no communication ran on a device";

// By row of kernels: the bytes of the collective, of those that are small.
std::map<uint32_t, int64_t> SmallCollectives(const RankFacts& rank, bool* sizes_known) {
  std::map<uint32_t, int64_t> small;
  if (rank.trace().collectives.empty()) return small;
  const std::vector<CollectiveRun>& all = MatchCollectives(rank.run());
  const CollectiveOfWork& by_work = CollectivesByWork(rank.run())[rank.index()];
  uint32_t next = 0;
  for (const DeviceSpan& span : rank.spans()) {
    const uint32_t work = next++;
    const uint32_t at = span.kind == WorkKind::kCommunication ? by_work[work] : kNone;
    if (at == kNone || all[at].bytes == 0) continue;
    *sizes_known = true;
    if (all[at].bytes < kSmallBytes && rank.IsCounted(span.start)) small[span.row] = all[at].bytes;
  }
  return small;
}

}  // namespace

Answer FindCommOnComputeStream(const RankFacts& rank) {
  if (!rank.has_device() || !Communicates(rank.trace())) return CannotTell(kNoCommunication);
  const Streams& streams = UseOfStreams(rank);
  ComputeStreams computes(streams);
  std::map<CommunicationStream, int64_t> on;
  Exposed exposed = ExposedTransfers(rank, [&](const DeviceSpan& span) {
    const CommunicationStream stream(span.device, span.stream);
    if (!computes.Holds(stream)) return false;
    ++on[stream];
    return true;
  });
  const int64_t lost = rank.PerStep(exposed.ns);
  if (on.empty() || !rank.IsWorth(lost, kLeastExposedShare)) return {};
  const CommunicationStream stream =
      std::ranges::max_element(on, {}, [](const auto& entry) { return entry.second; })->first;
  const StreamUse& use = streams.by_stream.at(stream);
  Insight insight{.device = stream.first,
                  .finding = fmt::format(
                      "Stream {} communicates {} and also runs {} of the compute time, so that "
                      "neither hides the other: for {} {} ({}) nothing computes meanwhile.",
                      StreamNumber(stream.second), rank.TimesAStep(use.collectives),
                      FormatShare(use.compute_ns, streams.compute_ns), FormatNs(lost),
                      rank.OfStep(), FormatShare(lost, rank.step_ns())),
                  .count = use.collectives,
                  .lost_ns = lost};
  insight.saving = SavingOf(ComputeToHideBehind(rank), std::move(exposed));
  return {.insights = {std::move(insight)}};
}

Answer FindExposedComm(const RankFacts& rank) {
  if (!rank.has_device() || !Communicates(rank.trace())) return CannotTell(kNoCommunication);
  ComputeStreams computes(UseOfStreams(rank));
  Exposed exposed = ExposedTransfers(rank, [&computes](const DeviceSpan& span) {
    return !computes.Holds({span.device, span.stream});
  });
  const int64_t lost = rank.PerStep(exposed.ns);
  if (!rank.IsWorth(lost, kLeastExposed)) return {};
  const auto count = static_cast<int64_t>(exposed.by_span.size());
  const int64_t compute = ComputeToHideBehind(rank);
  Insight insight{
      .finding = fmt::format(
          "For {} {} ({}) {} on streams of its own while nothing computes, {}; most "
          "of it is {}. {} of compute a step run without communication.",
          FormatNs(lost), rank.OfStep(), FormatShare(lost, rank.step_ns()), DescribeExposed(rank),
          rank.TimesAStep(count), MostExposed(rank, exposed), FormatNs(compute)),
      .advice = std::string(AdviceOnCollective(MostExposedType(rank, exposed))),
      .count = count,
      .lost_ns = lost};
  insight.saving = SavingOf(compute, std::move(exposed));
  return {.insights = {std::move(insight)}};
}

Answer FindSmallCollectives(const RankFacts& rank) {
  if (!rank.has_device() || !Communicates(rank.trace())) return CannotTell(kNoCommunication);
  bool sizes_known = false;
  const std::map<uint32_t, int64_t> small = SmallCollectives(rank, &sizes_known);
  if (!sizes_known) return CannotTell("the sizes of collectives are not recorded");
  const auto count = static_cast<int64_t>(small.size());
  if (rank.TimesPerStep(count) < kLeastSmallPerStep) return {};
  int64_t bytes = 0;
  for (const auto& [kernel, size] : small) bytes += size;
  Exposed exposed = ExposedTransfers(rank, [&small](const DeviceSpan& span) {
    return span.table == DeviceSpan::Table::kKernel && small.contains(span.row);
  });
  const int64_t lost = rank.PerStep(exposed.ns);
  if (!rank.IsWorth(lost, kLeastSmallShare)) return {};
  const int64_t buckets = std::max<int64_t>(static_cast<int64_t>(rank.waterfall().counted),
                                            (bytes + kBucketBytes - 1) / kBucketBytes);
  Insight insight{
      .finding = fmt::format("A collective of less than {} runs {}, {} each in the mean: for {} {} "
                             "({}) one of them runs while nothing computes.",
                             FormatBytes(kSmallBytes), rank.TimesAStep(count),
                             FormatBytes(static_cast<uint64_t>(bytes / count)), FormatNs(lost),
                             rank.OfStep(), FormatShare(lost, rank.step_ns())),
      .count = count,
      .lost_ns = lost,
      .saving = Saving{.moments = std::move(exposed.moments),
                       .causes = BitOf(Cause::kTransfer),
                       .share = 1 - static_cast<double>(buckets) / static_cast<double>(count)}};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
