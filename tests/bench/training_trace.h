// Trace files of a training job, of any length, as the collector writes them: what the benches of
// reading and analysing load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/collector/trace_file.h"

namespace ranktap::bench {

// Steps of 400 kernels, 40 of them collectives on a stream of their own; a launch for each, 40
// ranges, 8 copies and one wait of the host: 857 events of four kinds from two writers. Lengths and
// gaps vary deterministically. Times of the host and the device are of one clock.
class TrainingTrace {
 public:
  static constexpr int kKernels = 400, kRanges = 40, kCopies = 8;
  static constexpr uint64_t kEventsPerStep = 2 * kKernels + 2 * kCopies + kRanges + 1 + 1;

  TrainingTrace(const std::string& path, uint32_t rank, uint64_t events) : file_(path) {
    file_.hello().mutable_rank()->set_rank(rank);
    AddNames();
    for (uint64_t written = 0; written < events; written += kEventsPerStep) AddStep();
    EndFrames();
    file_.Close();
  }

 private:
  static constexpr uint32_t kNames = 48, kStepName = 1, kModuleName = 2, kFirstKernel = 3,
                            kCollectiveName = kFirstKernel + kNames;

  uint64_t Random(uint64_t below) {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return random_ % below;
  }

  void AddNames() {
    v1::Dictionary names;
    const auto add = [&names](uint32_t id, const std::string& text) {
      names.add_strings()->set_id(id);
      names.mutable_strings(names.strings_size() - 1)->set_text(text);
    };
    add(kStepName, "train_step");
    add(kModuleName, "transformer.layer");
    for (uint32_t i = 0; i < kNames; ++i) {
      add(kFirstKernel + i, "void at::native::kernel_of_a_layer<float, " + std::to_string(i) +
                                ">(float const*, float*, int)");
    }
    add(kCollectiveName, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)");
    uint32_t id = 0;
    for (const char* const name :
         {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"}) {
      v1::ApiFunction& api = *names.add_api_functions();
      api.set_id(++id);
      api.set_domain(static_cast<uint32_t>(proto::ApiDomain::kRuntime));
      api.set_cbid(200 + id);
      api.set_name(name);
    }
    file_.Add({.type = proto::FrameType::kDictionary}, names.SerializeAsString());
  }

  void Launch(uint32_t api) {
    proto::ApiCallEvent call{};
    call.start_ticks = host_;
    host_ += 1500 + Random(3000);
    call.end_ticks = host_;
    call.correlation = ++correlation_;
    call.api = api;
    calls_.push_back(call);
    host_ += 500 + Random(2000);
  }
  void Push(uint32_t name) {
    proto::RangePushEvent push{};
    push.time_ticks = host_;
    push.nvtx.name = name;
    pushes_.push_back(push);
  }
  void Pop() {
    proto::RangePopEvent pop{};
    pop.time_ticks = host_;
    pops_.push_back(pop);
  }

  void AddStep() {
    Push(kStepName);
    host_ += 200 + Random(50'000);
    for (int i = 0; i < kKernels; ++i) {
      if (i % (kKernels / kRanges) == 0) Push(kModuleName);
      if (i % (kKernels / kCopies) == 0) AddCopy();
      AddKernel(i % 10 == 9);
      if ((i + 1) % (kKernels / kRanges) == 0) Pop();
    }
    proto::ApiCallEvent wait{};
    wait.start_ticks = host_;
    host_ = std::max(host_, std::max(device_, network_)) + 2000;
    wait.end_ticks = host_;
    wait.correlation = ++correlation_;
    wait.api = 3;
    calls_.push_back(wait);
    Pop();
    host_ += 300;
    if (++steps_ % 16 == 0) EndFrames();
  }
  void AddKernel(bool is_collective) {
    Launch(1);
    uint64_t& stream = is_collective ? network_ : device_;
    proto::KernelEvent kernel{};
    kernel.start_ns = std::max(std::max(stream, is_collective ? device_ : 0) + 900, host_ + 2000);
    stream = kernel.end_ns = kernel.start_ns + 2000 + Random(is_collective ? 60'000 : 9'000);
    kernel.correlation = correlation_;
    kernel.context = 1;
    kernel.stream = is_collective ? 20 : 7;
    kernel.name = is_collective
                      ? kCollectiveName
                      : kFirstKernel + static_cast<uint32_t>(kernels_.size() * 7 % kNames);
    kernels_.push_back(kernel);
  }
  void AddCopy() {
    Launch(2);
    proto::CopyEvent copy{};
    copy.start_ns = std::max(device_ + 900, host_ + 2000);
    copy.bytes = 4096 + Random(1 << 20);
    device_ = copy.end_ns = copy.start_ns + 2000 + copy.bytes / 20;
    copy.correlation = correlation_;
    copy.context = 1;
    copy.stream = 7;
    copy.copy_kind = 1, copy.src_kind = 2, copy.dst_kind = 3;
    copies_.push_back(copy);
  }

  template <typename Event>
  void Encode(std::vector<Event>* events, proto::EventEncoder* encoder) {
    for (Event& event : *events) {
      event.header = {static_cast<uint16_t>(Event::kKind), sizeof(Event), 0, 0};
      if (!encoder->Add(&event.header, sizeof(Event))) std::abort();
    }
  }
  void EndFrames() {
    proto::EventEncoder host, device;
    Encode(&calls_, &host), Encode(&pushes_, &host), Encode(&pops_, &host);
    Encode(&kernels_, &device), Encode(&copies_, &device);
    if (host.count() > 0) file_.AddEncoded(1, &host);
    if (device.count() > 0) file_.AddEncoded(2, &device);
    file_.EndBlock();
    calls_.clear(), pushes_.clear(), pops_.clear(), kernels_.clear(), copies_.clear();
  }

  collector::TraceFileBuilder file_;
  uint64_t random_ = 88172645463325252ull, steps_ = 0;
  uint64_t host_ = 1'000'000'000, device_ = host_, network_ = host_;
  uint32_t correlation_ = 0;
  std::vector<proto::ApiCallEvent> calls_;
  std::vector<proto::RangePushEvent> pushes_;
  std::vector<proto::RangePopEvent> pops_;
  std::vector<proto::KernelEvent> kernels_;
  std::vector<proto::CopyEvent> copies_;
};

}  // namespace ranktap::bench
