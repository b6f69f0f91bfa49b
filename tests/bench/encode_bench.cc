// What an event costs to encode, on the wire and on disk: on the columns of real traces, put into
// the structs that a ring holds. Usage: encode_bench TRACE.json...
#include <simdjson.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "agent/core/arena.h"
#include "agent/core/segment.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "agent/transport/dictionary.h"
#include "proto/encode.h"
#include "proto/frame.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using agent::cupti::CallGroup;
using agent::cupti::ClassifyCall;
using proto::ApiCallEvent;
using proto::KernelEvent;

// Kineto's nanoseconds as cycles of a 2.5 GHz TSC.
constexpr double kTicksPerNs = 2.5;

struct Columns {
  std::vector<KernelEvent> kernels;
  std::map<int64_t, std::vector<ApiCallEvent>> launches;  // by thread, each a writer
};

// The agent's own names and ids, as in a process.
class Names {
 public:
  Names() {
    const uint8_t session[16] = {};
    if (!segment_.Create(32 << 20, session)) std::abort();
    arena_.Attach(segment_, new std::atomic<uint64_t>[agent::Arena::kTableSlots]());
    ids_.emplace(segment_, arena_);
  }
  proto::ArenaRef Intern(proto::EntryKind kind, std::string_view content) {
    return arena_.Intern(kind, std::as_bytes(std::span(content)));
  }
  agent::Dictionary& ids() { return *ids_; }

 private:
  agent::Segment segment_;
  agent::Arena arena_;
  std::optional<agent::Dictionary> ids_;
};

Names& AllNames() {
  static Names names;
  return names;
}

template <typename Event>
Event Make() {
  Event event{};
  event.header.kind = static_cast<uint16_t>(Event::kKind);
  event.header.bytes = sizeof(Event);
  return event;
}

uint64_t Ns(simdjson::dom::element value) {
  return static_cast<uint64_t>(static_cast<long double>(value.get_double().value()) * 1000.0L +
                               0.5L);
}

Columns Load(const char* path) {
  simdjson::dom::parser parser;
  simdjson::dom::element document = parser.load(path);
  Columns columns;
  Names& names = AllNames();
  for (simdjson::dom::element event : document["traceEvents"]) {
    std::string_view category;
    if (event["cat"].get(category) != simdjson::SUCCESS) continue;
    if (category == "kernel") {
      const auto args = event["args"];
      auto kernel = Make<KernelEvent>();
      kernel.start_ns = Ns(event["ts"]);
      kernel.end_ns = kernel.start_ns + Ns(event["dur"]);
      kernel.correlation = static_cast<uint32_t>(args["correlation"].get_int64().value());
      kernel.device = static_cast<uint32_t>(args["device"].get_int64().value());
      kernel.context = static_cast<uint32_t>(args["context"].get_int64().value());
      kernel.stream = static_cast<uint32_t>(args["stream"].get_int64().value());
      kernel.name = names.Intern(proto::EntryKind::kString, event["name"].get_string().value());
      kernel.shape = names.Intern(proto::EntryKind::kLaunchShape,
                                  simdjson::minify(args["grid"]) + simdjson::minify(args["block"]) +
                                      simdjson::minify(args["registers per thread"]) +
                                      simdjson::minify(args["shared memory"]));
      columns.kernels.push_back(kernel);
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      const std::string_view name = event["name"];
      const CallGroup group = ClassifyCall(name).group;
      if (group != CallGroup::kLaunch && group != CallGroup::kGraphLaunch) continue;
      auto call = Make<ApiCallEvent>();
      const auto ticks = [](uint64_t ns) {
        return static_cast<uint64_t>(static_cast<long double>(ns) * kTicksPerNs);
      };
      call.start_ticks = ticks(Ns(event["ts"]));
      call.end_ticks = call.start_ticks + ticks(Ns(event["dur"]));
      call.correlation = static_cast<uint32_t>(event["args"]["correlation"].get_int64().value());
      call.api = names.Intern(proto::EntryKind::kApiFunction, name);
      columns.launches[event["tid"].get_int64().value()].push_back(call);
    }
  }
  return columns;
}

// Frames of at most a ring chunk's worth of events, as the sender makes them.
template <typename Event>
size_t EncodeFrames(std::span<const Event> events, std::string* out) {
  constexpr size_t kPerFrame = proto::kChunkCapacity / sizeof(Event);
  static proto::EventEncoder encoder;
  agent::Dictionary& ids = AllNames().ids();
  size_t frames = 0;
  std::string payload;
  for (size_t first = 0; first < events.size(); first += kPerFrame) {
    payload.clear();
    const auto part = events.subspan(first, std::min(kPerFrame, events.size() - first));
    for (const Event& event : part) {
      if (!encoder.Add(&event.header, sizeof(Event))) std::abort();
    }
    encoder.Encode(ids, payload);
    Keep(ids.TakeDefinitions());
    const proto::FrameHeader header = proto::MakeFrameHeader(
        {.type = proto::FrameType::kEvents, .events = static_cast<uint32_t>(part.size())},
        std::as_bytes(std::span(payload)));
    if (out != nullptr) {
      out->append(reinterpret_cast<const char*>(&header), sizeof(header));
      out->append(payload);
    }
    Keep(header);
    ++frames;
  }
  return frames;
}

size_t Compressed(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  return ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1);
}

template <typename Event>
double NsPerEvent(const std::vector<Event>& events) {
  // Enough rounds for a tenth of a second each way.
  const int rounds = static_cast<int>(5'000'000 / (events.size() + 1)) | 1;
  return MedianNs(rounds, [&] { EncodeFrames<Event>(events, nullptr); }) /
         static_cast<double>(events.size());
}

// The floor: the same bytes touched once, copied out of the ring.
template <typename Event>
double CopyNsPerEvent(const std::vector<Event>& events) {
  std::vector<Event> copy(events.size());
  const int rounds = static_cast<int>(5'000'000 / (events.size() + 1)) | 1;
  return MedianNs(rounds,
                  [&] {
                    std::memcpy(copy.data(), events.data(), events.size() * sizeof(Event));
                    Keep(copy[0]);
                  }) /
         static_cast<double>(events.size());
}

void Run(const char* path) {
  const Columns columns = Load(path);
  std::string trace(path);
  trace = trace.substr(trace.rfind('/') + 1);
  trace = trace.substr(0, trace.find('.'));

  std::string wire;
  EncodeFrames<KernelEvent>(columns.kernels, &wire);
  const auto kernels = static_cast<double>(columns.kernels.size());
  Print({.name = "encode, kernel event, " + trace,
         .value = NsPerEvent(columns.kernels),
         .unit = "ns",
         .floor_name = "copying the struct",
         .floor = CopyNsPerEvent(columns.kernels),
         .target = 25});
  Print({.name = "wire, kernel event, " + trace,
         .value = static_cast<double>(wire.size()) / kernels,
         .unit = "B",
         .target = 11});
  Print({.name = "disk (zstd-1), kernel event, " + trace,
         .value = static_cast<double>(Compressed(wire)) / kernels,
         .unit = "B",
         .target = 7});

  wire.clear();
  size_t launches = 0;
  std::vector<ApiCallEvent> all;
  for (const auto& [thread, calls] : columns.launches) {
    EncodeFrames<ApiCallEvent>(calls, &wire);
    all.insert(all.end(), calls.begin(), calls.end());
    launches += calls.size();
  }
  Print({.name = "encode, launch event, " + trace,
         .value = NsPerEvent(all),
         .unit = "ns",
         .floor_name = "copying the struct",
         .floor = CopyNsPerEvent(all)});
  Print({.name = "wire, launch event, " + trace,
         .value = static_cast<double>(wire.size()) / static_cast<double>(launches),
         .unit = "B",
         .target = 11});
  Print({.name = "disk (zstd-1), launch event, " + trace,
         .value = static_cast<double>(Compressed(wire)) / static_cast<double>(launches),
         .unit = "B",
         .target = 7});
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) ranktap::bench::Run(argv[i]);
  return argc > 1 ? 0 : 2;
}
