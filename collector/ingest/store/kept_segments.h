// Which files of a run `--keep` has, and which of them go. All ranks' files end at the same
// instants; what lies between two of these is a segment. It knows names and sizes, no files: pure.
//
//   | segment | segment | segment | open |      the oldest goes while the others hold enough
//   <------------- keep ------------->
//
// A segment ends once it is a sixth of the time long and some rank has recorded events in it: what
// came before ranks fell silent stays for as long as they are silent.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace ranktap::collector {

struct KeepLimits {
  uint64_t ns = 0;     // 0: everything is kept
  uint64_t bytes = 0;  // of one rank; 0: any
  bool any() const { return ns != 0; }
};

class KeptSegments {
 public:
  // Instants are CLOCK_MONOTONIC_RAW.
  KeptSegments(KeepLimits limits, uint64_t now_ns) : limits_(limits), begun_ns_(now_ns) {}

  // How long a segment is; 0: there are none, everything is kept.
  static uint64_t LengthNs(KeepLimits limits);

  // A rank has recorded events; its open file is so long now.
  void NoteEvents(uint64_t open_bytes);
  // The segment is to be ended: first each rank's file, by Add, then itself, by EndSegment.
  bool IsDue(uint64_t now_ns) const;
  // `session`: which process it is of.
  void Add(const std::string& session, const std::string& file, uint64_t bytes);
  void EndSegment(uint64_t now_ns);
  // The files that go now.
  std::vector<std::string> TakeOld();
  bool Has(const std::string& file) const;

  // What there is of the process: since when, and how much in closed files.
  uint64_t since_ns() const { return ended_.empty() ? begun_ns_ : ended_.front().begin_ns; }
  uint64_t BytesOf(const std::string& session) const;
  // Files of the process, in their order.
  std::vector<std::string> FilesOf(const std::string& session) const;
  // One file in the place of those.
  void Replace(const std::string& session, const std::string& file, uint64_t bytes);

  struct Interval {
    uint64_t begin_ns = 0, end_ns = 0;
    std::map<std::string, std::vector<std::string>> files;  // by process
  };
  // Ended segments back to `from_ns`; whole ones.
  Interval Since(uint64_t from_ns) const;

 private:
  struct File {
    std::string session, name;
    uint64_t bytes = 0;
  };
  struct Segment {
    uint64_t begin_ns = 0, end_ns = 0;
    std::vector<File> files;
  };
  uint64_t BytesOfLargest() const;
  void Subtract(const File& file);

  KeepLimits limits_;
  uint64_t begun_ns_;
  bool has_events_ = false;
  uint64_t open_bytes_ = 0;                // of the largest open file
  std::deque<Segment> ended_;              // the oldest first
  std::vector<File> closed_;               // of the open one
  std::map<std::string, uint64_t> bytes_;  // of all files, by process
};

}  // namespace ranktap::collector
