// Runs in memory whose content a test knows: nested ranges and calls on threads, kernels and copies
// that they launch on streams, allocations. All pseudo-random, from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "collector/trace/run.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {

class SampleTrace {
 public:
  SampleTrace(uint32_t rank, uint32_t seed, int steps) : random_(seed) {
    trace_.info.rank = rank;
    trace_.info.file = "rank-" + std::to_string(rank) + ".trace";
    trace_.info.pid = 100;  // in every rank the same, as in containers
    trace_.info.executable = "/usr/bin/python3";
    trace_.info.host = "node-" + std::to_string(rank);
    trace_.realtime_offset_ns = kRealtime + rank;
    AddNames();
    trace_.lanes = {{0, 1, 7}, {0, 1, 13}};
    for (int32_t thread : {100, 101}) {
      Writer& writer = trace_.writers.emplace_back();
      writer.thread = thread;
      writer.name = thread == 100 ? "main" : "";
    }
    for (int i = 0; i < steps; ++i) AddStep();
    AddMemory();
    trace_.first_ns = 1000;
    trace_.last_ns = now_ + 1'000'000;
    trace_.has_clock = true;
  }

  static constexpr int64_t kRealtime = 1'700'000'000'000'000'000;
  Trace& trace() { return trace_; }

 private:
  int64_t Random(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random_); }

  void AddNames() {
    v1::Dictionary names;
    const auto text = [](auto* entry, uint32_t id, const std::string& value) {
      entry->set_id(id);
      entry->set_text(value);
    };
    text(names.add_strings(), 1, "_Z4gemmPfi");
    text(names.add_strings(), 2, "forward");
    text(names.add_strings(), 3, "back\\ward \"quoted\"\n\xff");
    text(names.add_nvtx_domains(), 1, "lib");
    for (uint32_t id = 1; id <= 3; ++id) {
      v1::ApiFunction& api = *names.add_api_functions();
      api.set_id(id);
      api.set_domain(
          static_cast<uint32_t>(id == 3 ? proto::ApiDomain::kDriver : proto::ApiDomain::kRuntime));
      api.set_cbid(200 + id);
      api.set_name(id == 1 ? "cudaLaunchKernel" : id == 2 ? "cudaMemcpyAsync" : "cuLaunchKernel");
    }
    v1::LaunchShapeEntry& shape = *names.add_shapes();
    shape.set_id(1);
    for (uint32_t value : {4, 2, 1}) shape.add_grid(value);
    for (uint32_t value : {128, 1, 1}) shape.add_block(value);
    shape.set_registers_per_thread(32);
    const std::string bytes = names.SerializeAsString();
    trace_.dictionary.Add(std::as_bytes(std::span(bytes)));
  }

  void AddStep() {
    const int64_t start = now_;
    const size_t range = AddRange(start, RangeKind::kPushPop, 2, 0);
    now_ += Random(50);
    for (int64_t i = Random(4); i >= 0; --i) AddLaunch();
    const size_t inner = AddRange(now_, RangeKind::kPushPop, 3, 1);
    AddLaunch();
    trace_.ranges.end.Set(inner, now_);
    trace_.ranges.end.Set(range, now_ += Random(20));
    // Begins before the step ends, and ends in the next one.
    const size_t loose = AddRange(now_, RangeKind::kStartEnd, 2, 0);
    trace_.ranges.end.Set(loose, now_ + 5000);
    Ranges& marks = trace_.marks;
    marks.start.push_back(now_);
    marks.end.push_back(now_);
    marks.name.push_back(3);
    marks.domain.push_back(0);
    marks.writer.push_back(1);
    marks.depth.push_back(0);
    marks.kind.push_back(static_cast<uint8_t>(RangeKind::kMark));
    now_ += 1 + Random(100);
  }

  size_t AddRange(int64_t start, RangeKind kind, uint32_t name, uint16_t domain) {
    Ranges& ranges = trace_.ranges;
    ranges.start.push_back(start);
    ranges.end.push_back(start);
    ranges.name.push_back(name);
    ranges.domain.push_back(domain);
    ranges.writer.push_back(0);
    ranges.depth.push_back(0);
    ranges.kind.push_back(static_cast<uint8_t>(kind));
    return ranges.size() - 1;
  }

  void AddLaunch() {
    ApiCalls& calls = trace_.api_calls;
    const bool copy = Random(3) == 0;
    const auto call = static_cast<uint32_t>(calls.size());
    calls.start.push_back(now_);
    now_ += 5 + Random(30);
    calls.end.push_back(now_);
    calls.correlation.push_back(++correlation_);
    calls.api.push_back(copy ? 2 : Random(1) == 0 ? 1 : 3);
    calls.writer.push_back(0);
    // A graph launch has several kernels.
    for (int64_t i = copy || Random(5) != 0 ? 0 : 3; i >= 0; --i) AddWork(call, copy);
    now_ += Random(20);
  }

  void AddWork(uint32_t call, bool copy) {
    const auto lane = static_cast<uint32_t>(Random(1));
    int64_t& free = free_[lane];
    // Now and then a kernel begins a little before the one before it has ended.
    const int64_t ready = std::max(now_ + Random(500), free - (Random(9) == 0 ? 3 : 0));
    const int64_t begins = device_ = std::max(device_, ready);
    free = begins + 10 + Random(300);
    DeviceWork& work = copy ? static_cast<DeviceWork&>(trace_.copies) : trace_.kernels;
    work.start.push_back(begins);
    work.end.push_back(free);
    work.correlation.push_back(correlation_);
    work.lane.push_back(lane);
    work.launch.push_back(call);
    if (!copy) {
      trace_.kernels.name.push_back(1);
      trace_.kernels.shape.push_back(1);
      return;
    }
    trace_.copies.bytes.push_back(4096);
    trace_.copies.copy_kind.push_back(1);
    trace_.copies.src_kind.push_back(2);
    trace_.copies.dst_kind.push_back(3);
  }

  void AddMemory() {
    for (int i = 0; i < 10; ++i) {
      trace_.memory.push_back({.time_ns = static_cast<uint64_t>(2000 + i * 10),
                               .bytes = 512,
                               .device = 0,
                               .operation = i % 3 == 2 ? 2u : 1u,
                               .memory_kind = 3});
    }
  }

  std::mt19937 random_;
  Trace trace_;
  int64_t now_ = 1000, device_ = 0, free_[2] = {};
  uint32_t correlation_ = 0;
};

// `ranks` traces of `steps` steps; the seed is the rank's number plus `seed`.
inline Run SampleRun(uint32_t ranks, int steps, uint32_t seed = 1) {
  Run run;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    run.traces.push_back(std::move(SampleTrace(rank, seed + rank, steps).trace()));
  }
  return run;
}

inline std::vector<const Trace*> PointersTo(const Run& run) {
  std::vector<const Trace*> traces;
  for (const Trace& trace : run.traces) traces.push_back(&trace);
  return traces;
}

}  // namespace ranktap::collector
