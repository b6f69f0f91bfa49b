// A data-parallel training job in memory whose every answer is known in closed form.
//
// In common time all ranks begin step s at the moment B at which the last collective of step s - 1
// ended. Rank r then loads data (a range "DataLoader"), is busy on the host, and launches
// everything at once. kFirstLatency later its device copies, then for each layer computes on stream
// 7 and all-reduces on stream 13, each kGap after what came before. A collective ends on all ranks
// `transfer` after the last of them began it. Where `syncs` is set the host waits for that end.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Lateness {
  uint32_t rank = 0;
  Cause cause = Cause::kCompute;  // or kMemory, kHost, kDataLoading
  int64_t ns = 0;                 // more than the others, each step
  int first_step = 0, last_step = INT32_MAX;
};

struct Clock {
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  int64_t Local(int64_t common) const {
    return common + offset_ns + static_cast<int64_t>(static_cast<double>(common) * drift_ppm / 1e6);
  }
};

struct JobShape {
  uint32_t ranks = 4, layers = 3, seed = 1;
  int steps = 8;
  int64_t compute_ns = 200'000, copy_ns = 20'000, transfer_ns = 80'000;
  int64_t data_ns = 50'000, host_ns = 40'000;
  int64_t jitter_ns = 0;  // of each compute kernel: 0 to this more, from the seed
  bool syncs = true;
  std::vector<Lateness> late;
  std::vector<Clock> clocks;  // by rank; none: all the same
  uint64_t elements = 1 << 20;
};

class SyntheticJob {
 public:
  static constexpr int64_t kStart = 1'000'000, kFirstLatency = 5'000, kGap = 1'000;
  static constexpr uint32_t kComputeName = 1, kCollectiveName = 2, kStepName = 3, kDataName = 4;

  explicit SyntheticJob(JobShape shape) : shape_(std::move(shape)), random_(shape_.seed) {
    shape_.clocks.resize(shape_.ranks);
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) AddRank(rank);
    int64_t begin = kStart;
    for (int step = 0; step < shape_.steps; ++step) begin = AddStep(step, begin);
    end_ = begin;
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      run_.traces[rank].first_ns = shape_.clocks[rank].Local(kStart);
      run_.traces[rank].last_ns = shape_.clocks[rank].Local(end_);
    }
  }

  Run& run() { return run_; }
  // By rank, then step.
  const std::vector<std::vector<CauseTimes>>& causes() const { return causes_; }
  int64_t total_ns() const { return end_ - kStart; }
  // Of the chain of what each moment waited for, over all ranks, by rank and cause.
  const std::vector<CauseTimes>& critical() const { return critical_; }

 private:
  void AddRank(uint32_t rank) {
    Trace& trace = run_.traces.emplace_back();
    trace.info.rank = rank;
    trace.info.world_size = shape_.ranks;
    trace.info.file = "rank-" + std::to_string(rank) + ".trace";
    trace.closed = true;
    for (const char* const name :
         {"gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "train_step", "DataLoader"}) {
      trace.dictionary.AppendString(name);
    }
    for (const char* const name :
         {"cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync"}) {
      trace.dictionary.AppendApi({.domain = proto::ApiDomain::kRuntime, .cbid = 1, .name = name});
    }
    trace.lanes = {{0, 1, 7}, {0, 1, 13}};
    trace.writers.emplace_back().thread = 100;
    causes_.emplace_back();
    critical_.emplace_back();
  }

  int64_t Late(uint32_t rank, Cause cause, int step) const {
    int64_t ns = 0;
    for (const Lateness& late : shape_.late) {
      const bool holds = late.first_step <= step && step <= late.last_step;
      if (late.rank == rank && late.cause == cause && holds) ns += late.ns;
    }
    return ns;
  }

  void AddWork(uint32_t rank, DeviceWork* work, uint32_t lane, int64_t launched, int64_t start,
               int64_t end, uint32_t api) {
    Trace& trace = run_.traces[rank];
    const Clock& clock = shape_.clocks[rank];
    work->start.push_back(clock.Local(start));
    work->end.push_back(clock.Local(end));
    work->lane.push_back(lane);
    const auto call = static_cast<uint32_t>(trace.api_calls.size());
    work->correlation.push_back(call + 1);
    work->launch.push_back(call);
    AddCall(rank, launched, launched + 200, api);
    ++trace.events;
  }
  void AddCall(uint32_t rank, int64_t start, int64_t end, uint32_t api) {
    Trace& trace = run_.traces[rank];
    trace.api_calls.start.push_back(shape_.clocks[rank].Local(start));
    trace.api_calls.end.push_back(shape_.clocks[rank].Local(end));
    trace.api_calls.correlation.push_back(static_cast<uint32_t>(trace.api_calls.size()));
    trace.api_calls.api.push_back(api);
    trace.api_calls.writer.push_back(0);
    ++trace.events;
  }
  void AddRange(uint32_t rank, int64_t start, int64_t end, uint32_t name, uint16_t depth) {
    Ranges& ranges = run_.traces[rank].ranges;
    ranges.start.push_back(shape_.clocks[rank].Local(start));
    ranges.end.push_back(shape_.clocks[rank].Local(end));
    ranges.name.push_back(name);
    ranges.domain.push_back(0);
    ranges.writer.push_back(0);
    ranges.depth.push_back(depth);
    ranges.kind.push_back(0);
    ++run_.traces[rank].events;
  }
  void AddKernel(uint32_t rank, uint32_t lane, int64_t launched, int64_t start, int64_t end,
                 uint32_t name) {
    Kernels& kernels = run_.traces[rank].kernels;
    AddWork(rank, &kernels, lane, launched, start, end, 1);
    kernels.name.push_back(name);
    kernels.shape.push_back(0);
    kernels.collective.PadTo(kernels.size());
  }

  // One entry of each rank: where its device has come to, and when it launches next.
  struct Progress {
    int64_t launch = 0, device = 0;
  };

  int64_t AddStep(int step, int64_t begin) {
    std::vector<Progress> at(shape_.ranks);
    std::vector<CauseTimes> times(shape_.ranks, CauseTimes{});
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      const int64_t data = shape_.data_ns + Late(rank, Cause::kDataLoading, step);
      const int64_t host = shape_.host_ns + Late(rank, Cause::kHost, step);
      const int64_t copy = shape_.copy_ns + Late(rank, Cause::kMemory, step);
      at[rank] = {begin + data + host, begin + data + host + kFirstLatency};
      steps_.push_back(run_.traces[rank].ranges.size());
      AddRange(rank, begin, begin, kStepName, 0);
      AddRange(rank, begin, begin + data, kDataName, 1);
      Copies& copies = run_.traces[rank].copies;
      AddWork(rank, &copies, 0, at[rank].launch, at[rank].device, at[rank].device + copy, 3);
      copies.bytes.push_back(static_cast<uint64_t>(copy) * 20);  // 20 GB/s
      copies.copy_kind.push_back(1);
      copies.src_kind.push_back(2);
      copies.dst_kind.push_back(3);
      at[rank].launch += 300;
      at[rank].device += copy;
      Tell(&times[rank], Cause::kDataLoading, data);
      Tell(&times[rank], shape_.syncs && step > 0 ? Cause::kSync : Cause::kHost, host);
      Tell(&times[rank], Cause::kLatency, kFirstLatency);
      Tell(&times[rank], Cause::kMemory, copy);
    }
    std::vector<CauseTimes> chain = times;  // since all ranks were last together
    int64_t end = begin;
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      end = AddLayer(step, layer, &at, &times, &chain);
    }
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      Ranges& ranges = run_.traces[rank].ranges;
      ranges.end.Set(steps_[steps_.size() - shape_.ranks + rank], shape_.clocks[rank].Local(end));
      if (shape_.syncs) AddCall(rank, at[rank].launch, end, 2);
      causes_[rank].push_back(times[rank]);
    }
    return end;
  }

  int64_t AddLayer(int step, uint32_t layer, std::vector<Progress>* at,
                   std::vector<CauseTimes>* times, std::vector<CauseTimes>* chain) {
    int64_t last = 0;
    uint32_t last_rank = 0;
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      Progress& now = (*at)[rank];
      const int64_t jitter = std::uniform_int_distribution<int64_t>(0, shape_.jitter_ns)(random_);
      const int64_t compute =
          shape_.compute_ns + jitter + (layer == 0 ? Late(rank, Cause::kCompute, step) : 0);
      AddKernel(rank, 0, now.launch, now.device + kGap, now.device + kGap + compute, kComputeName);
      now.launch += 300;
      now.device += kGap + compute + kGap;
      for (CauseTimes* const to : {&(*times)[rank], &(*chain)[rank]}) {
        Tell(to, Cause::kCompute, compute);
        Tell(to, Cause::kLatency, 2 * kGap);
      }
      if (now.device > last) {
        last = now.device;
        last_rank = rank;
      }
    }
    const int64_t end = last + shape_.transfer_ns;
    ++sequence_;
    for (uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      Progress& now = (*at)[rank];
      AddKernel(rank, 1, now.launch, now.device, end, kCollectiveName);
      Describe(rank);
      now.launch += 300;
      Tell(&(*times)[rank], Cause::kWait, last - now.device);
      Tell(&(*times)[rank], Cause::kTransfer, shape_.transfer_ns);
      now.device = end;
    }
    Tell(&(*chain)[last_rank], Cause::kTransfer, shape_.transfer_ns);
    for (size_t c = 0; c < kCauses; ++c) critical_[last_rank][c] += (*chain)[last_rank][c];
    chain->assign(shape_.ranks, CauseTimes{});
    return end;
  }

  void Describe(uint32_t rank) {
    Trace& trace = run_.traces[rank];
    std::string ranks = "[";
    for (uint32_t r = 0; r < shape_.ranks; ++r) ranks += (r == 0 ? "" : ", ") + std::to_string(r);
    trace.collectives.push_back({.name = "allreduce",
                                 .dtype = "Float",
                                 .group = "0",
                                 .group_description = "default_pg",
                                 .group_ranks = ranks + "]",
                                 .in_elements = shape_.elements,
                                 .out_elements = shape_.elements,
                                 .group_size = shape_.ranks,
                                 .sequence = sequence_});
    trace.kernels.collective[trace.kernels.size() - 1] =
        static_cast<uint32_t>(trace.collectives.size());
  }

  static void Tell(CauseTimes* times, Cause cause, int64_t ns) {
    (*times)[static_cast<size_t>(cause)] += ns;
  }

  JobShape shape_;
  std::mt19937 random_;
  Run run_;
  std::vector<size_t> steps_;  // rows of the steps' ranges, rank by rank
  std::vector<std::vector<CauseTimes>> causes_;
  std::vector<CauseTimes> critical_;
  uint64_t sequence_ = 0;
  int64_t end_ = 0;
};

}  // namespace ranktap::collector
