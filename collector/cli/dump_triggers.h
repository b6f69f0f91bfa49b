// `--on`: saves what `--keep` has when something happens to a rank. A thread of its own looks at
// the collector once a second, waits until what is on its way has come, and asks for the dump.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "collector/cli/keep.h"
#include "collector/cli/slow_steps.h"
#include "collector/file/file_descriptor.h"
#include "collector/ingest/collector.h"

namespace ranktap::collector {

// How often a run may save a dump by itself: ten times, ten minutes apart. Pure.
class DumpLimits {
 public:
  // Empty: it may now, and this one counts. Else why not, for people.
  std::string Take(const std::string& run, uint64_t now_ns);

 private:
  struct Done {
    uint64_t last_ns = 0;
    int count = 0;
  };
  std::map<std::string, Done> done_;
};

class DumpTriggers {
 public:
  // `collector` outlives it.
  DumpTriggers(const KeepOptions& options, const std::string& socket, Collector* collector);

  // Any thread. `run`: its directory, as the collector names it.
  void OnHang(const std::string& sentence, const std::string& run);
  // No dump begins after it.
  void Finish();

 private:
  struct Order {
    std::string run, reason;
    uint64_t at_ns = 0;
  };
  void Watch(const std::stop_token& stop);
  void Look();
  void LookForEnds();
  void Ask(const std::string& run, const std::string& reason);
  void Save(const Order& order);

  KeepOptions options_;
  std::string socket_;
  Collector* collector_;
  SlowSteps slow_steps_;
  std::map<uint64_t, uint64_t> out_of_memory_;  // how often, by session
  struct Watched {
    FileDescriptor handle;  // a pidfd
    std::string run, name;
  };
  std::map<pid_t, Watched> watched_;
  std::mutex mutex_;  // of what follows
  std::condition_variable_any wake_;
  DumpLimits limits_;
  std::deque<Order> orders_;
  std::jthread thread_;
};

// A line for people: what came of it.
std::string SentenceOfDump(const v1::Dump& dump);

}  // namespace ranktap::collector
