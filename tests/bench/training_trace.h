// Trace files of a training job, of any length, as the collector writes them: what the benches of
// reading and analysing load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <span>
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

  TrainingTrace(const std::string& path, uint64_t events) : TrainingTrace(path, 0, 1) {
    TrainingTrace* const alone = this;
    for (uint64_t written = 0; written < events; written += kEventsPerStep) AddStep({&alone, 1});
    End();
  }

  // A job as a user's: its ranks say how many they are, and a collective begins on each as it comes
  // there, and ends on all together. Lengths and gaps are each rank's own. Eight ranks share a host
  // and its clock. Compute kernels of rank kSlowRank take a tenth longer.
  static constexpr uint32_t kSlowRank = 17, kRanksOfNode = 8;
  static void WriteJob(const std::string& directory, uint32_t ranks, uint64_t events) {
    std::deque<TrainingTrace> traces;
    std::vector<TrainingTrace*> job;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      char name[32];
      std::snprintf(name, sizeof name, "/rank-%05u.trace", rank);
      job.push_back(&traces.emplace_back(directory + name, rank, ranks));
    }
    for (uint64_t written = 0; written < events; written += kEventsPerStep) AddStep(job);
    for (TrainingTrace& trace : traces) trace.End();
  }

  TrainingTrace(const std::string& path, uint32_t rank, uint32_t ranks)
      : file_(path),
        is_of_job_(ranks > 1),
        is_slow_(rank == kSlowRank),
        random_(88172645463325252ull + rank * 0x9E3779B97F4A7C15ull),
        booted_(rank / kRanksOfNode * 12'345'678'901ull) {
    auto& identity = *file_.hello().mutable_rank();
    identity.set_rank(rank);
    if (is_of_job_) {
      identity.set_world_size(ranks);
      file_.hello().mutable_process()->set_host("node-" + std::to_string(rank / kRanksOfNode));
    }
    AddNames();
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

  static void AddStep(std::span<TrainingTrace* const> job) {
    for (TrainingTrace* const rank : job) rank->BeginStep();
    for (int i = 0; i < kKernels; ++i) {
      for (TrainingTrace* const rank : job) {
        if (i % (kKernels / kRanges) == 0) rank->Push(kModuleName);
        if (i % (kKernels / kCopies) == 0) rank->AddCopy();
        rank->AddKernel(i % 10 == 9);
      }
      if (i % 10 == 9) EndTogether(job);
      if ((i + 1) % (kKernels / kRanges) != 0) continue;
      for (TrainingTrace* const rank : job) rank->Pop();
    }
    for (TrainingTrace* const rank : job) rank->EndStep();
  }
  // The last kernel of each rank.
  static void EndTogether(std::span<TrainingTrace* const> job) {
    uint64_t all_there = 0;
    for (const TrainingTrace* const rank : job) {
      all_there = std::max(all_there, rank->kernels_.back().start_ns - rank->booted_);
    }
    const uint64_t end = all_there + 2000 + job.front()->Random(60'000);
    for (TrainingTrace* const rank : job) {
      rank->network_ = rank->kernels_.back().end_ns = end + rank->booted_;
    }
  }

  void BeginStep() {
    Push(kStepName);
    host_ += 200 + Random(50'000);
  }
  void EndStep() {
    proto::ApiCallEvent wait{};
    wait.start_ticks = host_;
    host_ = std::max(host_, std::max(device_, network_)) + 2000;
    wait.end_ticks = host_;
    wait.correlation = ++correlation_;
    wait.api = 3;
    calls_.push_back(wait);
    if (is_of_job_) {
      proto::SyncEvent record{};
      record.start_ns = wait.start_ticks, record.end_ns = wait.end_ticks;
      record.correlation = wait.correlation;
      record.context = 1;
      record.stream = record.cuda_event = UINT32_MAX;  // it is about all streams
      record.type = 4;
      syncs_.push_back(record);
    }
    Pop();
    host_ += 300;
    if (++steps_ % 16 == 0) EndFrames();
  }
  void AddKernel(bool is_collective) {
    Launch(1);
    uint64_t& stream = is_collective ? network_ : device_;
    proto::KernelEvent kernel{};
    kernel.start_ns = std::max(std::max(stream, is_collective ? device_ : 0) + 900, host_ + 2000);
    if (!is_collective) {  // else EndTogether
      const uint64_t length = 2000 + Random(9'000);
      stream = kernel.end_ns = kernel.start_ns + length + (is_slow_ ? length / 10 : 0);
    }
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
  void End() {
    EndFrames();
    file_.Close();
  }
  void EndFrames() {
    proto::EventEncoder host, device;
    Encode(&calls_, &host), Encode(&pushes_, &host), Encode(&pops_, &host);
    Encode(&kernels_, &device), Encode(&copies_, &device), Encode(&syncs_, &device);
    if (host.count() > 0) file_.AddEncoded(1, &host);
    if (device.count() > 0) file_.AddEncoded(2, &device);
    file_.EndBlock();
    calls_.clear(), pushes_.clear(), pops_.clear(), kernels_.clear(), copies_.clear();
    syncs_.clear();
  }

  collector::TraceFileBuilder file_;
  const bool is_of_job_, is_slow_;
  uint64_t random_, steps_ = 0;
  const uint64_t booted_;  // ns earlier than rank 0's machine
  uint64_t host_ = 1'000'000'000 + booted_, device_ = host_, network_ = host_;
  uint32_t correlation_ = 0;
  std::vector<proto::ApiCallEvent> calls_;
  std::vector<proto::RangePushEvent> pushes_;
  std::vector<proto::RangePopEvent> pops_;
  std::vector<proto::KernelEvent> kernels_;
  std::vector<proto::CopyEvent> copies_;
  std::vector<proto::SyncEvent> syncs_;
};

}  // namespace ranktap::bench
