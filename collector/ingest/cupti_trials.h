// Tries a CUPTI that may end a process (proto/cupti_trial.h), for agents that ask: in a process of
// its own, as the user who asks and with nothing of ours, for a bounded time. Lives on the server's
// thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/net/event_loop.h"
#include "ranktap/v1/trial.pb.h"

namespace ranktap::collector {

class CuptiTrials {
 public:
  // On the server's thread.
  using Tell = std::function<void(v1::CuptiTrialResult::Outcome)>;

  // `program` understands `try-cupti` (collector/doctor/cupti_trial.h); empty: nothing is tried.
  CuptiTrials(std::string program, EventLoop* loop) : program_(std::move(program)), loop_(loop) {}
  // Trials that run are ended, and nobody is told.
  ~CuptiTrials();
  CuptiTrials(const CuptiTrials&) = delete;
  CuptiTrials& operator=(const CuptiTrials&) = delete;

  // A process that asks for one that is being tried waits for that. `tell` is called once, in this
  // call or later.
  void Try(const v1::CuptiTrial& trial, uid_t uid, gid_t gid, Tell tell);

 private:
  // The user, CUPTI, the driver, device and inode.
  using Name = std::tuple<uid_t, std::string, std::string, uint64_t, uint64_t>;
  struct Running {
    pid_t pid = -1;
    FileDescriptor pidfd, answer;
    EventLoop::Tag tag = 0;
    uint64_t number = 0;
    std::vector<Tell> waiting;
  };
  [[nodiscard]] bool Start(const Name& name, gid_t gid, Running* running);
  void OnEnd(const Name& name);

  std::string program_;
  EventLoop* loop_;
  std::map<Name, Running> running_;
  uint64_t last_number_ = 0;
};

}  // namespace ranktap::collector
