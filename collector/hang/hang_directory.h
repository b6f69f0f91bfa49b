// The directory of one hang, hang-TIME: a sentence, three samples of all stacks, what /proc says.
#pragma once

#include <string>
#include <vector>

#include "collector/file/hang_notes.h"
#include "collector/file/result.h"
#include "collector/file/run_directory.h"
#include "collector/hang/rank_look.h"
#include "collector/hang/wait_rules.h"

namespace ranktap::collector {

class HangDirectory {
 public:
  // Below `parent`, an open directory whose path is `path`.
  static Result<HangDirectory> Create(int parent, const std::string& path, uint64_t realtime_ns);

  // What could not be written is left out, and problem() says why.
  void WriteVerdict(const WaitVerdict& verdict, const std::vector<const RankLook*>& looks,
                    uint64_t realtime_ns);
  void WriteStacks(int number, const std::vector<RankLook>& looks);
  void WriteProcFacts(const std::vector<RankLook>& looks);
  // Into hang.json, after WriteVerdict.
  void AddCalls(const HangCalls& calls);
  // Another file.
  void Write(const std::string& name, const std::string& text);

  const std::string& path() const { return directory_.path(); }
  const std::string& problem() const { return problem_; }

 private:
  explicit HangDirectory(RunDirectory directory) : directory_(std::move(directory)) {}

  RunDirectory directory_;
  std::string verdict_;  // hang.json
  std::string problem_;  // the first
};

}  // namespace ranktap::collector
