#include "collector/ingest/cupti_trials.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ranktap::collector {
namespace {

// A driver that starts from cold takes seconds.
constexpr uint64_t kPatienceNs = 30'000'000'000;
constexpr size_t kMost = 16;  // at a time
constexpr size_t kMostOfAUser = 2;

// In the child, where only system calls may be made: other threads held locks at the fork.
bool BecomeUser(uid_t uid, gid_t gid) {
  if (::geteuid() == uid && ::getuid() == uid) return true;
  return ::geteuid() == 0 && ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
         ::syscall(SYS_setresgid, gid, gid, gid) == 0 &&
         ::syscall(SYS_setresuid, uid, uid, uid) == 0;
}

// Signals as a new program expects them.
void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void BecomeTrial(const char* program, char* const* arguments, uid_t uid, gid_t gid,
                              int answer) {
  ResetSignals();
  // 1 and not 0: core dumps into a program go on with 0.
  const rlimit no_core{.rlim_cur = 1, .rlim_max = 1};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  const int null = ::open("/dev/null", O_RDWR);
  const bool is_ready = BecomeUser(uid, gid) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                        ::chdir("/") == 0 && null >= 0 && ::dup2(answer, STDOUT_FILENO) >= 0 &&
                        ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(null, STDERR_FILENO) >= 0;
  char* const environment[] = {nullptr};
  if (is_ready) (void)::execve(program, arguments, environment);
  ::_exit(1);
}

v1::CuptiTrialResult::Outcome OutcomeIn(int answer) {
  char digit = 0;
  if (::read(answer, &digit, 1) != 1 || !v1::CuptiTrialResult::Outcome_IsValid(digit - '0')) {
    return v1::CuptiTrialResult::OUTCOME_NOT_TRIED;
  }
  return static_cast<v1::CuptiTrialResult::Outcome>(digit - '0');
}

void Kill(int pidfd) { (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0); }

}  // namespace

CuptiTrials::~CuptiTrials() {
  for (auto& [name, running] : running_) {
    loop_->Unwatch(running.tag);
    Kill(running.pidfd.get());
    (void)::waitpid(running.pid, nullptr, 0);
  }
}

void CuptiTrials::Try(const v1::CuptiTrial& trial, uid_t uid, gid_t gid, Tell tell) {
  const Name name(uid, trial.cupti(), trial.driver(), trial.cupti_device(), trial.cupti_inode());
  if (const auto found = running_.find(name); found != running_.end()) {
    return found->second.waiting.push_back(std::move(tell));
  }
  const auto of_user = static_cast<size_t>(std::ranges::count_if(
      running_, [uid](const auto& entry) { return std::get<0>(entry.first) == uid; }));
  Running running;
  const bool may_start = !program_.empty() && running_.size() < kMost && of_user < kMostOfAUser;
  if (!may_start || !Start(name, gid, &running)) {
    return tell(v1::CuptiTrialResult::OUTCOME_NOT_TRIED);
  }
  running.number = ++last_number_;
  running.waiting.push_back(std::move(tell));
  loop_->After(kPatienceNs, [this, name, number = running.number] {
    const auto found = running_.find(name);
    if (found != running_.end() && found->second.number == number) {
      Kill(found->second.pidfd.get());
    }
  });
  running_.emplace(name, std::move(running));
}

bool CuptiTrials::Start(const Name& name, gid_t gid, Running* running) {
  const auto& [uid, cupti, driver, device, inode] = name;
  std::string words[] = {
      "ranktap", "try-cupti", cupti, driver, std::to_string(device), std::to_string(inode)};
  char* arguments[std::size(words) + 1] = {};
  std::ranges::transform(words, arguments, [](std::string& word) { return word.data(); });
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  running->answer.Reset(ends[0]);
  const FileDescriptor write(ends[1]);
  running->pid = ::fork();
  if (running->pid == 0) BecomeTrial(program_.c_str(), arguments, uid, gid, write.get());
  if (running->pid < 0) return false;
  running->pidfd.Reset(static_cast<int>(::syscall(SYS_pidfd_open, running->pid, 0)));
  if (running->pidfd.valid()) {
    running->tag =
        loop_->Watch(running->pidfd.get(), EPOLLIN, [this, name](uint32_t) { OnEnd(name); });
  }
  if (running->tag != 0) return true;
  // Before Linux 5.3 nothing would tell of its end.
  (void)::kill(running->pid, SIGKILL);
  (void)::waitpid(running->pid, nullptr, 0);
  return false;
}

void CuptiTrials::OnEnd(const Name& name) {
  const auto found = running_.find(name);
  if (found == running_.end()) return;
  const Running running = std::move(found->second);
  running_.erase(found);
  loop_->Unwatch(running.tag);
  (void)::waitpid(running.pid, nullptr, 0);
  const auto outcome = OutcomeIn(running.answer.get());
  for (const Tell& tell : running.waiting) tell(outcome);
}

}  // namespace ranktap::collector
