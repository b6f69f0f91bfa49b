// CUPTI's records into events.
// Runs on: the drain thread.  May not: call CUDA, wait on a user thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agent/core/arena.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_abi.h"
#include "proto/events.h"

namespace ranktap::agent::cupti {

// The times that CUPTI can give.
struct TimeBounds {
  uint64_t first_ns = 0, last_ns = UINT64_MAX;

  bool Hold(uint64_t time_ns) const { return time_ns >= first_ns && time_ns <= last_ns; }
};

class RecordReader {
 public:
  // `version` is the loaded library's: it decides how much of a record is there.
  RecordReader(uint32_t version, Arena& names) : version_(version), names_(names) {}

  // Emits what the record says on the drain thread's writer. False: a kind we do not know.
  [[nodiscard]] bool Emit(const Record& record, ThreadState& writer);

  // Holds for the records to come: one with a time outside is emitted without times, as work that
  // CUPTI has not timed.
  void SetBounds(const TimeBounds& bounds) { bounds_ = bounds; }
  uint64_t impossible_times() const { return impossible_times_; }

  // Device work that CUPTI gave no times for, since the last call.
  uint64_t TakeUntimed() { return std::exchange(untimed_, 0); }

  // Records of graphs' nodes, or of graphs as a whole.
  uint64_t of_graphs() const { return of_graphs_; }

  // Kernels and copies that came without a correlation id, outside graphs: the library gives none
  // unless API records are on.
  uint64_t uncorrelated() const { return uncorrelated_; }
  // Names that found no room in the arena.
  uint64_t names_missing() const { return names_missing_; }

 private:
  proto::KernelEvent ToKernel(const KernelRecord& record);
  proto::CopyEvent ToCopy(const MemcpyRecord& record);
  static proto::CopyEvent ToPeerCopy(const PeerMemcpyRecord& record);
  static proto::MemsetEvent ToMemset(const MemsetRecord& record);
  proto::SyncEvent ToSync(const SynchronizationRecord& record) const;
  proto::CudaEventEvent ToCudaEvent(const CudaEventRecord& record) const;
  proto::GraphLaunchEvent ToGraphLaunch(const GraphTraceRecord& record) const;
  proto::OverheadEvent ToOverhead(const OverheadRecord& record) const;
  proto::ContextEvent ToContext(const ContextRecord& record) const;
  static proto::StreamEvent ToStream(const StreamRecord& record);
  proto::MemoryEvent ToMemory(const MemoryRecord& record);
  static proto::MemoryPoolEvent ToMemoryPool(const MemoryPoolRecord& record);
  static proto::JitEvent ToJit(const JitRecord& record);

  template <typename Event>
  void Count(const Event& event);
  template <typename Event>
  void DropImpossibleTimes(Event& event);
  bool AtLeast(uint32_t version) const { return version_ >= version; }
  proto::ArenaRef NameOf(const char* name);
  proto::ArenaRef ShapeOf(const KernelRecord& record);
  void CountUncorrelated(uint32_t correlation, uint32_t graph) {
    if (correlation == 0 && graph == 0) ++uncorrelated_;
  }

  // By pointer, with the text compared: CUPTI's names live as long as their module, and a pointer
  // may come back for another.
  struct CachedName {
    const char* pointer = nullptr;
    const char* name = nullptr;
    proto::ArenaRef ref = 0;
  };
  static constexpr size_t kCachedNames = 1024;

  uint32_t version_;
  Arena& names_;
  std::vector<CachedName> cache_ = std::vector<CachedName>(kCachedNames);
  TimeBounds bounds_;
  uint64_t impossible_times_ = 0, untimed_ = 0, of_graphs_ = 0;
  uint64_t uncorrelated_ = 0;
  uint64_t names_missing_ = 0;
};

}  // namespace ranktap::agent::cupti
