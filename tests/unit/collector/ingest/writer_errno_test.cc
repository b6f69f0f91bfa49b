// Every system call of the writer fails once, with ENOSPC and with EIO: nothing crashes, nothing is
// stored twice, and nothing is missing without being declared or reported. The calls are replaced
// in this program; what is not told to fail goes on to libc.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "collector/ingest/store/session_store.h"
#include "collector/trace/load/trace_check.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace {

struct Plan {
  bool armed = false;
  int call = 0, fails_at = 0, error = 0;
};
Plan plan;

// True: this call is the one.
bool FailsNow() {
  if (!plan.armed || ++plan.call != plan.fails_at) return false;
  errno = plan.error;
  return true;
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto real = Real<ssize_t (*)(int, const iovec*, int)>("writev");
  return FailsNow() ? -1 : real(fd, parts, count);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t)>("write");
  return FailsNow() ? -1 : real(fd, bytes, size);
}
int ftruncate(int fd, off_t size) noexcept {
  static const auto real = Real<int (*)(int, off_t)>("ftruncate");
  return FailsNow() ? -1 : real(fd, size);
}
off_t lseek(int fd, off_t offset, int whence) noexcept {
  static const auto real = Real<off_t (*)(int, off_t, int)>("lseek");
  return FailsNow() ? -1 : real(fd, offset, whence);
}
int fchmod(int fd, mode_t mode) noexcept {
  static const auto real = Real<int (*)(int, mode_t)>("fchmod");
  return FailsNow() ? -1 : real(fd, mode);
}
int renameat(int from, const char* old_name, int to, const char* new_name) noexcept {
  static const auto real = Real<int (*)(int, const char*, int, const char*)>("renameat");
  return FailsNow() ? -1 : real(from, old_name, to, new_name);
}
int linkat(int from, const char* old_name, int to, const char* new_name, int flags) noexcept {
  static const auto real = Real<int (*)(int, const char*, int, const char*, int)>("linkat");
  return FailsNow() ? -1 : real(from, old_name, to, new_name, flags);
}
int openat(int directory, const char* name, int flags, ...) {
  static const auto real = Real<int (*)(int, const char*, int, mode_t)>("openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return FailsNow() ? -1 : real(directory, name, flags, mode);
}
long syscall(long number, ...) noexcept {
  static const auto real = Real<long (*)(long, long, long, long, long, long, long)>("syscall");
  va_list rest;
  va_start(rest, number);
  long words[6];
  for (long& word : words) word = va_arg(rest, long);
  va_end(rest);
  if (FailsNow()) return -1;
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
}

namespace ranktap::collector {
namespace {

constexpr uint64_t kBlocks = 60;
constexpr uint64_t kPerBlock = 10;

FrameBlock Kernels(uint64_t first) {
  proto::EventEncoder encoder;
  auto kernels = MakeKernels(kPerBlock, 1000 + first * 1000, static_cast<uint32_t>(first) + 1);
  for (auto& kernel : kernels) {
    kernel.header = {1, sizeof(kernel), 0, 0};
    kernel.name = 0;
    EXPECT_TRUE(encoder.Add(&kernel.header, sizeof(kernel)));
  }
  IdentityIds ids;
  std::string payload;
  encoder.Encode(ids, payload);
  FrameBlock block;
  block.Append(
      {.type = proto::FrameType::kEvents, .writer = 1, .first_event = first, .events = kPerBlock},
      std::as_bytes(std::span(payload)), 1);
  return block;
}

FrameBlock Goodbye() {
  v1::Goodbye goodbye;
  v1::Account& account = *goodbye.mutable_accounts()->add_accounts();
  account.set_writer(1);
  account.set_produced(kBlocks * kPerBlock);
  account.set_committed(kBlocks * kPerBlock);
  const std::string payload = goodbye.SerializeAsString();
  FrameBlock block;
  block.Append({.type = proto::FrameType::kGoodbye}, std::as_bytes(std::span(payload)), 1);
  return block;
}

// A whole session with the n-th call failing. Returns how many calls there were.
int RunWithFailure(int fails_at, int error) {
  TemporaryDirectory temporary;
  RunDirectory directory = std::move(*RunDirectory::Create(temporary / "run", "x"));
  BlockCompressor compressor;
  StoreContext context{&directory, &compressor, std::string(16, 'c'), {}};
  v1::Hello hello;
  hello.set_session("0123456789abcdef");
  hello.mutable_rank()->set_rank(0);
  bool whole = false;
  {
    SessionStore store(&context, hello, 4711);
    plan = {.armed = true, .fails_at = fails_at, .error = error};
    for (uint64_t i = 0; i < kBlocks; ++i) {
      store.Store(Kernels(i * kPerBlock));
      RunInfo info;
      info.traces = store.infos();
      (void)directory.WriteInfo(info);
    }
    store.Store(Goodbye());
    v1::Ending ending;
    ending.set_how(v1::Ending::HOW_GOODBYE);
    store.Close(ending);
    plan.armed = false;
    whole = !store.infos().empty() && store.infos().back().status == TraceStatus::kClosed;
  }
  std::string what = "call " + std::to_string(fails_at) + ", " + std::string(std::strerror(error));
  const Result<RunCheck> check = CheckRun(temporary / "run");
  if (!check) {
    ADD_FAILURE() << what << ": " << check.message();
    return plan.call;
  }
  uint64_t stored = 0, lost = 0;
  for (const std::string& problem : check->problems) what += "\n  " + problem;
  for (const TraceCheck& trace : check->traces) {
    what += "\n  " + trace.path + ": " + std::to_string(trace.events) + " events";
    for (const Damage& problem : trace.problems) what += "; " + problem.what;
    stored += trace.events;
    for (const auto& [id, writer] : trace.writers) lost += writer.declared_lost;
  }
  EXPECT_LE(stored + lost, kBlocks * kPerBlock) << what << ": something is stored twice";
  // Whatever is not there is declared, or verify says that the file is not whole.
  if (check->ok()) {
    EXPECT_EQ(stored + lost, kBlocks * kPerBlock) << what;
  }
  EXPECT_TRUE(whole || !check->ok()) << what << ": a failure that verify does not see";
  EXPECT_GE(stored, (kBlocks - 2) * kPerBlock) << what << ": one failure costs one block";
  return plan.call;
}

TEST(WriterErrnoTest, EachOfTheFirstSystemCallsMayFailOnce) {
  constexpr int kCalls = 200;
  for (const int error : {ENOSPC, EIO}) {
    int calls = 0;
    for (int n = 1; n <= kCalls; ++n) calls = std::max(calls, RunWithFailure(n, error));
    // Otherwise the test reaches less than its name says.
    EXPECT_GE(calls, kCalls);
  }
}

}  // namespace
}  // namespace ranktap::collector
