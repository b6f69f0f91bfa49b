// What of a process's dictionary matters now: domains and names of steps, phases and collectives.
// Bounded, whatever the process names. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ranktap::collector {

// What the host of a rank may be inside of, by the agent's hooks.
enum class LivePhase : uint8_t {
  kNone,
  kData,
  kBackward,
  kOptimizer,
  kCheckpoint,
  kCompilation,
  kCollection,
};
inline constexpr size_t kLivePhases = 7;

enum class LiveDomain : uint8_t { kPrograms, kSteps, kPhases, kCollectives, kIgnored };

class LiveNames {
 public:
  // A dictionary frame's payload, which has been seen to parse.
  void Add(std::span<const std::byte> dictionary);

  LiveDomain Domain(uint64_t id) const {
    return id < domains_.size() ? domains_[id] : LiveDomain::kPrograms;
  }
  LivePhase Phase(uint64_t name) const;
  // Of the mark of an allocation that failed; 0: no such name has come.
  uint64_t OutOfMemory() const { return out_of_memory_; }
  bool KnowsCollectiveKernels() const { return !kernels_.empty(); }
  bool IsCollectiveKernel(uint64_t name) const { return name < kernels_.size() && kernels_[name]; }
  // The number of a step that the program's own range is called by; none: not like a step.
  std::optional<int64_t> Step(uint64_t name) const;
  // Of a collective of gloo; empty: not known.
  std::string Collective(uint64_t name) const;
  // About what it takes.
  size_t MemoryBytes() const;

 private:
  void AddDomain(uint64_t id, std::string_view text);
  void AddString(uint64_t id, std::string_view text);

  static constexpr size_t kMostDomains = 1024, kMostKernels = 1u << 16, kSteps = 256,
                          kMostCollectives = 256;
  struct StepName {
    uint64_t id = 0;
    int64_t number = 0;
  };
  std::vector<LiveDomain> domains_;  // by id
  uint64_t out_of_memory_ = 0;
  std::array<uint64_t, kLivePhases> phases_{};
  std::vector<bool> kernels_;    // by id: communicates
  std::vector<StepName> steps_;  // by id modulo its size: "iteration 7" is a new name each time
  std::unordered_map<uint64_t, std::string> collectives_;
};

}  // namespace ranktap::collector
