// What `ranktap top` knows: the last looks at the collectors, and what it may ask of them. Blocks,
// for a bounded time.
#pragma once

#include <deque>
#include <future>
#include <string>
#include <vector>

#include "collector/cli/control.h"
#include "collector/cli/top_rows.h"
#include "collector/report/run_filter.h"
#include "collector/report/table.h"

namespace ranktap::collector {

class TopWatch {
 public:
  TopWatch(std::vector<CollectorAnswer> found, std::string job, NumberSet ranks)
      : found_(std::move(found)), job_(std::move(job)), ranks_(std::move(ranks)) {}

  // False: no collector answers any more.
  bool Look();
  void ShowRanks(NumberSet ranks) { ranks_ = std::move(ranks); }
  // What START or STOP came to, in a sentence.
  std::string Order(v1::ControlRequest::Verb verb) const;
  // The same of a dump of all that is kept, once it is there.
  std::future<std::string> Dump() const;

  std::vector<TopRow> Rows(TopOrder order, bool with_lines) const;
  // The watch's sentences go before those that events tell, which say the same with less.
  void AddWaits(const std::vector<TopRow>& rows, Table* table) const;

 private:
  std::vector<CollectorAnswer> Ask(v1::ControlRequest request) const;

  std::vector<CollectorAnswer> found_;
  std::string job_;
  NumberSet ranks_;  // empty: all
  std::deque<TopLook> looks_;
};

}  // namespace ranktap::collector
