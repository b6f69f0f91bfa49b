// `run|collect`: the hang watch, and what happens when it names a hang.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collector/cli/dump_triggers.h"
#include "collector/file/file_descriptor.h"
#include "collector/hang/hang_watch.h"
#include "collector/ingest/collector.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

struct HangOptions {
  std::string waits_after, hang_after, report, command;
  WaitLimits limits;
};
void AddHangOptions(Arguments* app, HangOptions* options);
// Fills in the limits. An exit status, after a complaint, where a time is none.
std::optional<int> CheckHangOptions(HangOptions* options);

class HangAlarm {
 public:
  // `run`: the directory of the run and the command, for --on-hang kill. `collector`, `triggers`
  // and `options` outlive it.
  HangAlarm(const HangOptions& options, const std::string& socket, const std::string& run,
            pid_t command, Collector* collector, DumpTriggers* triggers);
  // `collect`: runs are where the collector says.
  HangAlarm(const HangOptions& options, const std::string& socket, Collector* collector,
            DumpTriggers* triggers);
  ~HangAlarm();

  // Stops the watch, and ends what is left of a job that --on-hang kill ends. `asked_to_end_ns`:
  // ChildProcess's.
  void Finish(uint64_t asked_to_end_ns = 0);
  // After Finish: what a job that failed failed of, as far as the watch saw it.
  void SayLast(int wait_status) const;

 private:
  void Start(const std::string& socket, Collector* collector);
  FileDescriptor PlaceFor(const std::vector<pid_t>& ranks, std::string* path);
  void Say(const WaitVerdict& verdict, const std::string& directory) const;
  void React(const WaitVerdict& verdict, const std::string& directory);
  void RunCommand(const std::string& sentence, const std::string& directory);
  void KillJob(const std::string& sentence);

  const HangOptions& options_;
  DumpTriggers* triggers_;
  const std::string socket_, run_;
  FileDescriptor command_;   // a pidfd of run's command
  std::string run_of_hang_;  // the last one's directory, as the collector names it
  std::string killed_for_, last_words_;
  bool has_run_ = false;
  std::unique_ptr<HangWatch> watch_;
  std::jthread killer_;
};

}  // namespace ranktap::collector
