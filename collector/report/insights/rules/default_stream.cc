// Work on CUDA's default stream waits for all that was launched before it on streams which are not
// non-blocking, and they wait for it: nobody asked for that order.
#include <fmt/core.h>

#include <map>
#include <set>

#include "collector/facts/stream_waits.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// CUpti_ActivityStreamFlag.
constexpr uint32_t kBlockingFlag = 1, kNullFlag = 3;
// From the end of one piece to the start of the next that waited for it: 1 to 3 us on A100, H100.
constexpr int64_t kHandoverNs = 5'000;
constexpr double kLeastShareOfDefaultStream = 0.05;  // of the step, that launched work stands so

// Numbers of streams are a device's own: each has a default stream 7.
using Stream = std::pair<uint32_t, uint32_t>;  // device, stream

struct Kinds {
  std::set<Stream> null, blocking;
};

Kinds KindsOfStreams(const Trace& trace) {
  Kinds kinds;
  std::map<uint32_t, uint32_t> device_of;  // by context
  for (const proto::ContextEvent& context : trace.contexts) {
    device_of[context.context] = context.device;
    kinds.null.emplace(context.device, context.null_stream);
  }
  for (const proto::StreamEvent& stream : trace.streams) {
    const auto device = device_of.find(stream.context);
    if (device == device_of.end()) continue;
    if (stream.flags == kNullFlag) kinds.null.emplace(device->second, stream.stream);
    if (stream.flags == kBlockingFlag) kinds.blocking.emplace(device->second, stream.stream);
  }
  return kinds;
}

struct Held {
  int64_t count = 0, ns = 0;
  std::map<uint32_t, int64_t> by_stream;
};

// Work that stood ready, with its stream free and no event to wait for, until work of the other
// kind of stream ended.
class HeldWork {
 public:
  explicit HeldWork(const RankFacts& rank)
      : rank_(rank), kinds_(KindsOfStreams(rank.trace())), waits_(StreamWaits(rank.trace())) {}

  Held Find() {
    for (const DeviceSpan& span : rank_.spans()) {
      if (span.launch == kNone) continue;
      const int64_t launched = rank_.trace().api_calls.start[span.launch];
      Progress& own = streams_[{span.device, span.stream}];
      if (rank_.IsCounted(span.start)) Add(span, own, launched);
      own.end = std::max(own.end, span.end);
      own.launched = launched;
    }
    return std::move(held_);
  }

 private:
  struct Progress {
    int64_t end = INT64_MIN, launched = INT64_MIN;
  };

  void Add(const DeviceSpan& span, const Progress& own, int64_t launched) {
    const Stream number(span.device, span.stream);
    const bool is_null = kinds_.null.contains(number);
    if (!is_null && !kinds_.blocking.contains(number)) return;
    const std::set<Stream>& others = is_null ? kinds_.blocking : kinds_.null;
    const int64_t ready = std::max(launched, own.end);
    int64_t held_until = INT64_MIN;
    for (const auto& [other, progress] : streams_) {
      if (other.first != span.device || !others.contains(other)) continue;
      if (progress.end <= span.start) held_until = std::max(held_until, progress.end);
    }
    const bool was_held = held_until > ready && span.start - held_until <= kHandoverNs;
    if (!was_held || WaitBetween(waits_, span.stream, own.launched, launched)) return;
    ++held_.count;
    held_.ns += held_until - ready;
    held_.by_stream[span.stream] += held_until - ready;
  }

  const RankFacts& rank_;
  const Kinds kinds_;
  const std::map<uint32_t, std::vector<StreamWait>> waits_;
  std::map<Stream, Progress> streams_;
  Held held_;
};

}  // namespace

Answer FindDefaultStream(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  if (rank.trace().streams.empty() || rank.trace().contexts.empty()) {
    return CannotTell("the kinds of streams are not recorded");
  }
  const Held held = HeldWork(rank).Find();
  const int64_t stood = rank.PerStep(held.ns);
  if (!rank.IsWorth(stood, kLeastShareOfDefaultStream)) return {};
  uint32_t most = held.by_stream.begin()->first;
  for (const auto& [stream, ns] : held.by_stream) {
    if (ns > held.by_stream.at(most)) most = stream;
  }
  // What the device would gain depends on whether both fit on it at once: a trace does not say.
  return {.insights = {
              {.finding = fmt::format(
                   "Launched work stands {}, {} {}, although its own stream is free, until the "
                   "default stream or one that blocks with it is done; most of it on stream {}.",
                   rank.TimesAStep(held.count), FormatNs(stood), rank.OfStep(), StreamNumber(most)),
               .count = held.count,
               .lost_ns = stood}}};
}

}  // namespace ranktap::collector
