// Watches the jobs of a collector for ranks that wait for each other, once a second, on a thread of
// its own. It reads /proc and the memory of the ranks; it never stops one, sends it nothing and
// waits for none, so that it cannot hang what it watches, nor hang with it. Only what its user
// gathers of a hang that is told already asks the ranks themselves.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/hang/hang_directory.h"
#include "collector/hang/hang_savings.h"
#include "collector/hang/rank_processes.h"
#include "collector/hang/wait_rules.h"

namespace ranktap::collector {

// A sentence for `status` and `top`.
struct WaitNotice {
  uid_t user = 0;
  std::string sentence;
};

struct HangWatchOptions {
  std::string socket;  // the collector's
  WaitLimits limits;
  bool own_only = false;  // see RankProcesses
  // Where the directory of a hang of these processes is to be made. Not valid: nowhere.
  std::function<FileDescriptor(const std::vector<pid_t>& ranks, std::string* path)> place;
  // On the watch's thread: whenever the sentences change; for each hang, and again once its
  // directory is filled. `directory` is empty where none could be made.
  std::function<void(std::vector<WaitNotice>)> on_notices;
  std::function<void(const WaitVerdict&, const std::string&directory)> on_hang, on_hang_saved;
  // What of it could not be saved, and why.
  std::function<void(const std::string&)> on_problem;
  // On the watch's thread, after on_hang: begins to gather what else is known of these ranks. What
  // it returns waits for that and puts it into the directory, before on_hang_saved: on a thread of
  // its own, while the watch goes on with other jobs.
  using AddRest = std::function<void(HangDirectory*)>;
  std::function<AddRest(const std::vector<const RankLook*>& looks)> gather;
};

class HangWatch {
 public:
  explicit HangWatch(HangWatchOptions options);
  ~HangWatch();

  // Stops; the sentence of the rank whose end was the first of several to be a bad one, or of the
  // last hang. Empty: there was none, or somebody had asked the job to end before.
  std::string Finish(uint64_t asked_to_end_ns = 0);

 private:
  struct Job {
    explicit Job(const WaitLimits& limits) : rules(limits) {}
    WaitRules rules;
    uid_t user = 0;
    uint64_t clock_ns = 1, next_full_ns = 0;
    WaitVerdict verdict;
    bool is_told = false;  // of this hang
    int directories = 0;
  };
  struct Readers {
    explicit Readers(pid_t process) : stacks(process), cuda(process) {}
    StackReader stacks;
    CudaStateReader cuda;
    // SIGKILL and _exit leave no stack: the last one before it is all that there is.
    std::string place;
    uint64_t placed_ns = 0;
    bool is_in_loader = false;
  };
  void Watch();
  void Look(uint64_t passed_ns);
  void NotePlaces();
  void AddPlace(EndedRank* ended);
  void LookAtJob(const std::string& name, uint64_t passed_ns, Job* job);
  void Tell(const std::string& name, Job* job);
  std::vector<RankLook> LookAtAll(const std::string& name);
  Readers& ReadersOf(pid_t process);
  void NoteEnd(const EndedRank& ended);
  // False: it is to stop.
  bool Pause(uint64_t ns);

  HangWatchOptions options_;
  RankProcesses processes_;
  std::map<std::string, Job> jobs_;
  std::map<pid_t, Readers> readers_;
  pid_t last_placed_ = 0;
  std::vector<std::string> notices_;
  std::string first_end_, first_bad_end_;
  struct Hang {
    std::string sentence;  // empty: there was none
    uint64_t began_ns = 0, ended_ns = 0;
  } last_hang_;
  uint64_t first_bad_ns_ = 0;
  size_t ends_ = 0;
  HangSavings savings_;
  FileDescriptor stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace ranktap::collector
