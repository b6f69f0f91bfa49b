#include "collector/doctor/cupti_trial.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "collector/file/owned_file.h"
#include "proto/spool.h"

namespace ranktap::collector {
namespace {

using proto::TrialOutcome;

constexpr size_t kMostRemembered = 64 << 10;
constexpr unsigned kPatienceS = 20;
constexpr const char* kMemory = "cupti-trials";
constexpr int kDriverFailed = 3;  // the child's exit status

// An answer holds for these files alone. Empty: one cannot be seen.
std::string NameOf(const TrialFiles& files) {
  struct stat cupti, driver;
  const bool is_same = !files.cupti.empty() && files.cupti[0] == '/' &&
                       ::stat(files.cupti.c_str(), &cupti) == 0 &&
                       cupti.st_dev == files.cupti_device && cupti.st_ino == files.cupti_inode;
  if (!is_same || files.driver.empty() || files.driver[0] != '/' ||
      ::stat(files.driver.c_str(), &driver) != 0) {
    return {};
  }
  const auto describe = [](const struct stat& file) {
    return fmt::format("{} {} {} {}.{:09}", file.st_dev, file.st_ino, file.st_size,
                       file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  };
  return fmt::format("\n{} {} ", describe(cupti), describe(driver));
}

// The user's own, and nobody else's to write in.
FileDescriptor OpenMemory() {
  const std::string path = proto::SpoolDirectoryOf(::geteuid());
  (void)::mkdir(path.c_str(), 0700);
  FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!directory.valid() || ::fstat(directory.get(), &status) != 0 ||
      status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return {};
  }
  return directory;
}

std::optional<TrialOutcome> Recall(int directory, const std::string& name) {
  const Result<std::string> text =
      ReadOwnedFile(directory, kMemory, ::geteuid(), kMemory, kMostRemembered);
  const size_t at = text ? text->find(name) : std::string::npos;
  if (at == std::string::npos || at + name.size() >= text->size()) return std::nullopt;
  return (*text)[at + name.size()] == '1' ? TrialOutcome::kAlive : TrialOutcome::kDied;
}

void Remember(int directory, const std::string& name, TrialOutcome outcome) {
  const FileDescriptor file(
      ::openat(directory, kMemory, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat status;
  const std::string line = fmt::format("{}{}", name, static_cast<int>(outcome));
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return;
  if (static_cast<size_t>(status.st_size) + line.size() > kMostRemembered) {
    (void)!::ftruncate(file.get(), 0);
  }
  (void)!::write(file.get(), line.data(), line.size());
}

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// Does as the agent would; it comes back, or dies here.
int CallCupti(const TrialFiles& files) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Without a bound it would call itself until the machine's memory is full.
  const rlimit stack{.rlim_cur = 8 << 20, .rlim_max = 8 << 20};
  (void)::setrlimit(RLIMIT_STACK, &stack);
  ::alarm(kPatienceS);
  ::close(STDOUT_FILENO);
  void* const driver = ::dlopen(files.driver.c_str(), RTLD_NOW | RTLD_GLOBAL);
  auto* const start = driver == nullptr ? nullptr : Find<int(unsigned)>(driver, "cuInit");
  if (start == nullptr || start(0) != 0) return kDriverFailed;
  void* const cupti = ::dlopen(files.cupti.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (cupti == nullptr) return kDriverFailed;
  using Callback = void (*)(void*, int, uint32_t, const void*);
  auto* const version = Find<int(uint32_t*)>(cupti, "cuptiGetVersion");
  auto* const subscribe = Find<int(void**, Callback, void*)>(cupti, "cuptiSubscribe");
  if (version == nullptr || subscribe == nullptr) return kDriverFailed;
  uint32_t number = 0;
  void* subscriber = nullptr;
  (void)version(&number);
  (void)subscribe(
      &subscriber, [](void*, int, uint32_t, const void*) {}, nullptr);
  return 0;
}

TrialOutcome TryNow(const TrialFiles& files) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(CallCupti(files));
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return TrialOutcome::kNotTried;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TrialOutcome::kAlive;
  const bool has_died =
      WIFSIGNALED(status) &&
      (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGABRT);
  return has_died ? TrialOutcome::kDied : TrialOutcome::kNotTried;
}

bool ToNumber(const std::string& text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

TrialOutcome TryCupti(const TrialFiles& files) {
  const std::string name = NameOf(files);
  if (name.empty()) return TrialOutcome::kNotTried;
  const FileDescriptor memory = OpenMemory();
  if (memory.valid()) {
    if (const auto known = Recall(memory.get(), name)) return *known;
  }
  const TrialOutcome outcome = TryNow(files);
  if (memory.valid() && outcome != TrialOutcome::kNotTried) {
    Remember(memory.get(), name, outcome);
  }
  return outcome;
}

int TryCuptiCommand(const std::vector<std::string>& arguments) {
  TrialFiles files;
  if (arguments.size() != 4 || !ToNumber(arguments[2], &files.cupti_device) ||
      !ToNumber(arguments[3], &files.cupti_inode)) {
    return 2;
  }
  files.cupti = arguments[0];
  files.driver = arguments[1];
  std::printf("%d", static_cast<int>(TryCupti(files)));
  return 0;
}

}  // namespace ranktap::collector
