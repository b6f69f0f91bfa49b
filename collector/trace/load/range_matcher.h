// Joins the ends of NVTX ranges to their beginnings: pushes with pops by writer and domain, starts
// with ends by id. Times stay host ticks. Used by one loader, on one thread.
//
// A frame holds its pushes and its pops in two sections, so their order is that of their times; at
// the same tick a pop comes first when there is something to pop.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

class RangeMatcher {
 public:
  explicit RangeMatcher(Ranges* ranges) : ranges_(ranges) {}

  // Rows [first_push, ranges->size()) are the frame's pushes; `pop_*` its pops.
  // `events_missing`: events of this writer were lost before the frame, so open ranges of it can no
  // longer be joined.
  struct Pops {
    Column<uint64_t> time;
    Column<uint16_t> domain;
    OptionalColumn<uint32_t> inline_payload;  // as Ranges::inline_payload
  };
  Pops& pops() { return pops_; }
  void EndFrame(uint16_t writer, size_t first_push, size_t push_count, size_t first_pop,
                bool events_missing);
  void AddStart(uint64_t id, uint32_t row) { starts_.push_back({id, row, 0}); }
  void AddEnd(uint64_t id, uint64_t time, uint32_t payload) {
    ends_.push_back({id, time, payload});
  }
  // Takes back what a frame added before it turned out malformed.
  struct Position {
    size_t pops, starts, ends;
  };
  Position position() const { return {pops_.time.size(), starts_.size(), ends_.size()}; }
  void Rewind(const Position& position) {
    pops_.time.Truncate(position.pops);
    pops_.domain.Truncate(position.pops);
    pops_.inline_payload.Truncate(position.pops);
    starts_.resize(position.starts);
    ends_.resize(position.ends);
  }
  // In [start, end) no ranges were recorded: what was open at `start` cannot be joined later.
  void AddGap(uint64_t start) { gaps_.push_back(start); }

  // Sets end, depth and unfinished of every row. `last`: the trace's last tick.
  void Match(uint64_t last);

  uint64_t unmatched_pops() const { return unmatched_pops_; }

 private:
  struct ById {
    uint64_t id = 0;
    uint64_t value = 0;  // row of a start, time of an end
    uint32_t payload = 0;
  };
  struct Frame {
    uint32_t first_push, push_count, first_pop, pop_count;
    uint16_t writer;
    bool events_missing;
  };
  struct WriterRanges {
    std::map<uint16_t, std::vector<uint32_t>> open;  // rows, by domain
    uint64_t last = 0;                               // time of the last event
    size_t next_gap = 0;
  };
  void MatchFrame(const Frame& frame, WriterRanges* writer);
  void Push(WriterRanges* writer, uint32_t row);
  void Pop(WriterRanges* writer, uint32_t pop);
  void End(uint32_t row, uint64_t time, uint32_t payload);
  void PassGaps(WriterRanges* writer, uint64_t until);
  void Abandon(WriterRanges* writer, uint64_t at);
  void MatchStartEnd(uint64_t last);
  void SetUnfinished(uint32_t row, uint64_t at);

  Ranges* ranges_;
  Pops pops_;
  std::vector<Frame> frames_;
  std::vector<ById> starts_, ends_;
  std::vector<uint64_t> gaps_;
  uint64_t unmatched_pops_ = 0;
};

}  // namespace ranktap::collector
