#include "collector/facts/samples/thread_purposes.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace ranktap::collector {
namespace {

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [text](std::string_view part) { return Holds(text, part); });
}

// What the frames of a stack are known by.
struct Stack {
  bool in_worker = false, in_fetch = false, imports = false, compiles = false, pins = false;
  bool collates = false, transforms = false, decodes = false, reads = false;
  bool gets = false, feeds = false, is_idle = false;
};

Stack LookThrough(const HostSamples& samples, uint32_t frame) {
  Stack stack;
  for (uint32_t at = frame; at != 0;) {
    const SampledFrame* const known = samples.Frame(at);
    if (known == nullptr) break;
    const std::string_view file = known->file, function = known->function;
    stack.in_worker |= file.ends_with("/torch/utils/data/_utils/worker.py");
    stack.in_fetch |= file.ends_with("/torch/utils/data/_utils/fetch.py");
    stack.pins |= file.ends_with("/torch/utils/data/_utils/pin_memory.py");
    stack.compiles |= Holds(file, "/torch/_inductor/compile_worker/");
    stack.imports |= file.starts_with("<frozen importlib.");
    const bool of_queue = file.ends_with("/multiprocessing/queues.py");
    stack.gets |= of_queue && function.ends_with("get");
    stack.feeds |= of_queue && function.ends_with("_feed");
    stack.is_idle |= file.ends_with("/threading.py") && function.ends_with("wait");
    // Only what the fetching calls is about items and batches.
    if (!stack.in_fetch) {
      stack.collates |=
          file.ends_with("/torch/utils/data/_utils/collate.py") || Holds(function, "collate");
      stack.transforms |=
          HasAny(file, {"/torchvision/transforms/", "/albumentations/", "/kornia/"}) ||
          HasAny(function, {"transform", "augment"});
      stack.decodes |= HasAny(file, {"/PIL/", "/cv2/", "/imageio/", "/torchvision/io/",
                                     "/torchcodec/", "/torchaudio/", "/soundfile"}) ||
                       Holds(function, "decode");
      stack.reads |= HasAny(function, {"read", "open"});
    }
    at = known->parent;
  }
  return stack;
}

LoaderWork WorkIn(const Stack& stack, bool waits) {
  if (stack.pins) return stack.gets ? LoaderWork::kWaits : LoaderWork::kPins;
  if (stack.feeds) return stack.is_idle ? LoaderWork::kNone : LoaderWork::kSends;
  if (!stack.in_fetch) {
    return stack.in_worker && stack.gets ? LoaderWork::kWaits : LoaderWork::kStarts;
  }
  if (stack.collates) return LoaderWork::kCollates;
  if (stack.transforms) return LoaderWork::kTransforms;
  if (stack.decodes) return LoaderWork::kDecodes;
  return stack.reads && waits ? LoaderWork::kReads : LoaderWork::kMakesItem;
}

}  // namespace

std::string_view NameOf(LoaderWork work) {
  static constexpr std::array<std::string_view, kLoaderWorks> kNames = {
      "",        "waiting for work", "starting", "reading",       "decoding", "transforming",
      "an item", "collating",        "sending",  "pinning memory"};
  return kNames[static_cast<size_t>(work)];
}

ThreadPurposes::ThreadPurposes(const Trace& trace) : trace_(trace) {
  const HostSamples& samples = SamplesOf(trace);
  std::vector<uint32_t> workers;
  std::map<uint32_t, Stack> seen;  // by frame
  for (const HostSample& sample : samples.all()) {
    const auto [at, is_new] = seen.try_emplace(sample.frame);
    if (is_new) {
      at->second = LookThrough(samples, sample.frame);
      work_[sample.frame] = {WorkIn(at->second, false), WorkIn(at->second, true)};
    }
    const Stack& stack = at->second;
    const uint32_t process = samples.ProcessOf(sample.thread);
    if (process == samples.main_thread()) {
      if (stack.pins && std::ranges::count(pins_memory_, sample.thread) == 0) {
        pins_memory_.push_back(sample.thread);
      }
      continue;
    }
    Process& helper = processes_[process];
    helper.start = std::min(helper.start, sample.start);
    helper.end = std::max(helper.end, sample.end);
    helper.compiles |= stack.compiles;
    if (stack.in_worker && std::ranges::count(workers, process) == 0) workers.push_back(process);
  }
  std::ranges::sort(
      workers, {}, [this](uint32_t worker) { return std::pair(processes_[worker].start, worker); });
  std::vector<int64_t> ends;  // by number
  for (const uint32_t worker : workers) {
    Process& helper = processes_[worker];
    const auto free =
        std::ranges::find_if(ends, [&helper](int64_t end) { return end <= helper.start; });
    helper.worker = static_cast<int>(free - ends.begin());
    if (free == ends.end()) ends.push_back(0);
    ends[static_cast<size_t>(helper.worker)] = helper.end;
  }
  loader_workers_ = static_cast<uint32_t>(ends.size());
}

std::string ThreadPurposes::NameOfThread(uint32_t thread) const {
  const HostSamples& samples = SamplesOf(trace_);
  if (thread == samples.main_thread()) return "main thread";
  const auto found = processes_.find(samples.ProcessOf(thread));
  if (found == processes_.end()) {
    return std::ranges::count(pins_memory_, thread) > 0 ? "pin-memory thread"
                                                        : fmt::format("thread {}", thread);
  }
  const auto& [process, helper] = *found;
  if (helper.worker >= 0) return fmt::format("loader worker {}", helper.worker);
  return fmt::format("{} {}", helper.compiles ? "compile worker" : "helper", process);
}

std::string_view ThreadPurposes::KindOfThread(uint32_t thread) const {
  const HostSamples& samples = SamplesOf(trace_);
  if (thread == samples.main_thread()) return "main";
  const auto found = processes_.find(samples.ProcessOf(thread));
  if (found == processes_.end()) {
    return std::ranges::count(pins_memory_, thread) > 0 ? "pin memory" : "other";
  }
  if (found->second.worker >= 0) return "loader workers";
  return found->second.compiles ? "compile workers" : "helpers";
}

int ThreadPurposes::LoaderWorkerOf(uint32_t thread) const {
  const auto found = processes_.find(SamplesOf(trace_).ProcessOf(thread));
  return found == processes_.end() ? -1 : found->second.worker;
}

LoaderWork ThreadPurposes::WorkOf(const HostSample& sample) const {
  const auto found = work_.find(sample.frame);
  if (found == work_.end()) return LoaderWork::kNone;
  const LoaderWork work = found->second[sample.state == proto::SampleState::kOnCpu ? 0 : 1];
  if (std::ranges::count(pins_memory_, sample.thread) > 0) return work;
  if (LoaderWorkerOf(sample.thread) < 0) return LoaderWork::kNone;
  // Of its threads only the one that sends is a part of the loader.
  const bool is_main = SamplesOf(trace_).ProcessOf(sample.thread) == sample.thread;
  return is_main || work == LoaderWork::kSends ? work : LoaderWork::kNone;
}

const ThreadPurposes& PurposesOf(const Trace& trace) {
  return trace.memo.Get<ThreadPurposes>([&trace] { return ThreadPurposes(trace); });
}

}  // namespace ranktap::collector
