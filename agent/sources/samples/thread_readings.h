// What the kernel has counted of each thread, from /proc/self/task, by descriptors that stay open.
// Runs on: the sampler; CloseInForkChild in a fork child.  May not: allocate, take a low
// descriptor.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/core/own_descriptor.h"
#include "proto/sample_marks.h"

namespace ranktap::agent::samples {

// Since the thread began. What cannot be read is 0.
struct ThreadCounts {
  uint64_t ran_ns = 0, queued_ns = 0;  // on a CPU; ready to run with none to run on
  uint64_t major_faults = 0;
  uint64_t read_bytes = 0, written_bytes = 0;  // from and to storage
  uint64_t voluntary = 0, forced = 0;          // switches to another thread
  uint32_t cpu = proto::kUnknownCpu;           // it ran on last
};

// Opens `path` at 512 or above. False: it cannot be read, or the limits allow no such number.
[[nodiscard]] bool OpenOwn(OwnDescriptor* file, const char* path);
// Empty: it cannot be read.
std::string_view ReadOwn(const OwnDescriptor& file, char* buffer, size_t bytes);
// The number behind `key` and blanks; 0: there is none.
uint64_t NumberAfter(std::string_view text, std::string_view key);

// From the texts of /proc/self/task/TID/stat, io and status.
void ParseStat(std::string_view text, ThreadCounts* counts);
void ParseIo(std::string_view text, ThreadCounts* counts);
void ParseStatus(std::string_view text, ThreadCounts* counts);

class ThreadReadings {
 public:
  // Four descriptors for each of the first, one for others: at most 160.
  static constexpr size_t kMostWhole = 24, kMostOthers = 64;

  // Between the two, threads are read; the files of those that were not are closed.
  void BeginRound() { ++round_; }
  void EndRound();

  // All but the switches and what was written. False: it has no room, or is gone.
  [[nodiscard]] bool Read(int32_t thread, ThreadCounts* counts);
  // Those, and the thread's name.
  void ReadRest(int32_t thread, ThreadCounts* counts, std::array<char, 16>* name);

  // What threads together ran and queued that Read has no files of. Since some time.
  struct Others {
    uint64_t ran_ns = 0, queued_ns = 0;
    uint64_t read = 0, threads = 0;  // how many were, and how many there are
  };
  Others ReadOthers();

  // proto::HostLack bits of what could not be read so far.
  uint32_t lacks() const { return lacks_; }
  // The others' descriptors, and all: they stay away while nothing is recorded.
  void Close();
  void CloseInForkChild();

 private:
  struct Whole {
    int32_t thread = 0;  // 0: free
    uint64_t round = 0;
    OwnDescriptor sched, stat, io, status;
  };
  struct Other {
    int32_t thread = 0;
    bool is_there = false;
    uint64_t ran_ns = 0, queued_ns = 0;
    OwnDescriptor sched;
  };

  Whole* Find(int32_t thread);
  Whole* Open(int32_t thread);
  void ListOthers(Others* others);
  void SeeOther(int32_t thread);
  static void Free(Whole* whole);

  std::array<Whole, kMostWhole> whole_{};
  std::array<Other, kMostOthers> others_{};
  OwnDescriptor tasks_;
  Others sum_;  // of those that have ended as well
  uint64_t round_ = 0;
  uint32_t lacks_ = 0;
};

}  // namespace ranktap::agent::samples
