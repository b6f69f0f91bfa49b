#include "collector/trace/load/range_matcher.h"

#include <algorithm>
#include <unordered_map>

namespace ranktap::collector {

void RangeMatcher::EndFrame(uint16_t writer, size_t first_push, size_t push_count, size_t first_pop,
                            bool events_missing) {
  const size_t pop_count = pops_.time.size() - first_pop;
  if (push_count == 0 && pop_count == 0 && !events_missing) return;
  frames_.push_back({.first_push = static_cast<uint32_t>(first_push),
                     .push_count = static_cast<uint32_t>(push_count),
                     .first_pop = static_cast<uint32_t>(first_pop),
                     .pop_count = static_cast<uint32_t>(pop_count),
                     .writer = writer,
                     .events_missing = events_missing});
}

void RangeMatcher::Match(uint64_t last) {
  std::sort(gaps_.begin(), gaps_.end());
  std::vector<WriterRanges> writers;
  for (const Frame& frame : frames_) {
    if (frame.writer >= writers.size()) writers.resize(frame.writer + 1);
    MatchFrame(frame, &writers[frame.writer]);
  }
  for (WriterRanges& writer : writers) {
    PassGaps(&writer, last);
    Abandon(&writer, last);
  }
  MatchStartEnd(last);
}

void RangeMatcher::MatchFrame(const Frame& frame, WriterRanges* writer) {
  if (frame.events_missing) Abandon(writer, writer->last);
  uint32_t push = frame.first_push;
  uint32_t pop = frame.first_pop;
  const uint32_t push_end = push + frame.push_count;
  const uint32_t pop_end = pop + frame.pop_count;
  while (push != push_end || pop != pop_end) {
    bool pop_is_next = push == push_end;
    if (push != push_end && pop != pop_end) {
      const auto push_time = static_cast<uint64_t>(ranges_->start[push]);
      const uint64_t pop_time = pops_.time[pop];
      pop_is_next = pop_time < push_time ||
                    (pop_time == push_time && !writer->open[pops_.domain[pop]].empty());
    }
    if (pop_is_next) {
      Pop(writer, pop++);
    } else {
      Push(writer, push++);
    }
  }
}

void RangeMatcher::Push(WriterRanges* writer, uint32_t row) {
  const auto time = static_cast<uint64_t>(ranges_->start[row]);
  PassGaps(writer, time);
  auto& open = writer->open[ranges_->domain[row]];
  ranges_->depth[row] = static_cast<uint16_t>(std::min<size_t>(open.size(), UINT16_MAX));
  open.push_back(row);
  writer->last = time;
}

void RangeMatcher::Pop(WriterRanges* writer, uint32_t pop) {
  const uint64_t time = pops_.time[pop];
  PassGaps(writer, time);
  auto& open = writer->open[pops_.domain[pop]];
  writer->last = time;
  if (open.empty()) {
    ++unmatched_pops_;
    return;
  }
  End(open.back(), time, pops_.inline_payload.At(pop));
  open.pop_back();
}

// A payload given at the end counts where none was given at the beginning.
void RangeMatcher::End(uint32_t row, uint64_t time, uint32_t payload) {
  ranges_->end.Set(row, static_cast<int64_t>(time));
  if (payload == 0 || ranges_->inline_payload.At(row) != 0) return;
  ranges_->inline_payload.PadTo(row + 1);
  ranges_->inline_payload[row] = payload;
}

void RangeMatcher::PassGaps(WriterRanges* writer, uint64_t until) {
  for (; writer->next_gap < gaps_.size() && gaps_[writer->next_gap] <= until; ++writer->next_gap) {
    Abandon(writer, gaps_[writer->next_gap]);
  }
}

void RangeMatcher::Abandon(WriterRanges* writer, uint64_t at) {
  for (auto& [domain, open] : writer->open) {
    for (const uint32_t row : open) SetUnfinished(row, at);
    open.clear();
  }
}

void RangeMatcher::MatchStartEnd(uint64_t last) {
  std::unordered_map<uint64_t, const ById*> end_of;
  end_of.reserve(ends_.size());
  for (const ById& end : ends_) end_of.emplace(end.id, &end);
  for (const ById& start : starts_) {
    const auto row = static_cast<uint32_t>(start.value);
    const auto found = end_of.find(start.id);
    if (found == end_of.end()) {
      SetUnfinished(row, last);
    } else {
      End(row, found->second->value, found->second->payload);
      end_of.erase(found);
    }
  }
  unmatched_pops_ += end_of.size();
}

void RangeMatcher::SetUnfinished(uint32_t row, uint64_t at) {
  ranges_->unfinished.PadTo(ranges_->size());
  ranges_->unfinished[row] = 1;
  ranges_->end.Set(row, std::max(ranges_->start[row], static_cast<int64_t>(at)));
}

}  // namespace ranktap::collector
