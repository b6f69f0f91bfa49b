// Reads of /proc/self/task, by plain system calls: the program may have replaced open and read.
// Runs on: see thread_readings.h.  May not: see there.
#include "agent/sources/samples/thread_readings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace ranktap::agent::samples {
namespace {

constexpr int kLowestOwn = 512;

uint64_t NumberIn(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "123 456 789": run time, time in the run queue, turns.
bool ReadSched(const OwnDescriptor& file, uint64_t* ran_ns, uint64_t* queued_ns) {
  char buffer[96];
  const std::string_view text = ReadOwn(file, buffer, sizeof(buffer));
  const size_t blank = text.find(' ');
  if (blank == text.npos) return false;
  *ran_ns = NumberIn(text);
  *queued_ns = NumberIn(text.substr(blank + 1));
  return true;
}

bool OpenOfThread(OwnDescriptor* file, int32_t thread, const char* name) {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/self/task/%d/%s", thread, name);
  return OpenOwn(file, path);
}

}  // namespace

bool OpenOwn(OwnDescriptor* file, const char* path) {
  file->Adopt(static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC)));
  if (file->get() < 0) return false;
  // A program may have few descriptors and count on the low ones.
  if (file->get() < kLowestOwn) file->Close();
  return file->get() >= 0;
}

std::string_view ReadOwn(const OwnDescriptor& file, char* buffer, size_t bytes) {
  const int fd = file.get();
  const long got = fd < 0 ? -1 : syscall(SYS_pread64, fd, buffer, bytes, 0);
  return got <= 0 ? std::string_view() : std::string_view(buffer, static_cast<size_t>(got));
}

uint64_t NumberAfter(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return NumberIn(text);
}

void ParseStat(std::string_view text, ThreadCounts* counts) {
  constexpr int kMajorFaults = 12, kCpu = 39, kFirstBehindName = 3;  // of proc(5)
  // A name may have blanks and brackets.
  const size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return;
  text.remove_prefix(name_end + 2);
  for (int field = kFirstBehindName; field <= kCpu && !text.empty(); ++field) {
    if (field == kMajorFaults) counts->major_faults = NumberIn(text);
    if (field == kCpu) counts->cpu = static_cast<uint32_t>(NumberIn(text));
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
}

void ParseIo(std::string_view text, ThreadCounts* counts) {
  counts->read_bytes = NumberAfter(text, "\nread_bytes:");
  counts->written_bytes = NumberAfter(text, "\nwrite_bytes:");
}

void ParseStatus(std::string_view text, ThreadCounts* counts) {
  counts->voluntary = NumberAfter(text, "\nvoluntary_ctxt_switches:");
  counts->forced = NumberAfter(text, "\nnonvoluntary_ctxt_switches:");
}

ThreadReadings::Whole* ThreadReadings::Find(int32_t thread) {
  Whole* const found = std::ranges::find(whole_, thread, &Whole::thread);
  return found == whole_.end() ? nullptr : found;
}

ThreadReadings::Whole* ThreadReadings::Open(int32_t thread) {
  Whole* const free = Find(0);
  // Where the system or the limits refuse it to one, nobody asks again.
  if (free == nullptr || (lacks_ & proto::kLacksFaults) != 0) return nullptr;
  free->thread = thread;
  // One that has ended meanwhile lacks all of them: that says nothing of the system.
  const bool has_stat = OpenOfThread(&free->stat, thread, "stat");
  if (!has_stat && thread != getpid()) return Free(free), nullptr;
  if (!has_stat) lacks_ |= proto::kLacksFaults;
  if (!OpenOfThread(&free->sched, thread, "schedstat")) lacks_ |= proto::kLacksQueue;
  if (!OpenOfThread(&free->io, thread, "io")) lacks_ |= proto::kLacksBytes;
  if (!OpenOfThread(&free->status, thread, "status")) lacks_ |= proto::kLacksSwitches;
  return free;
}

void ThreadReadings::Free(Whole* whole) {
  for (OwnDescriptor* file : {&whole->sched, &whole->stat, &whole->io, &whole->status}) {
    file->Close();
  }
  whole->thread = 0;
}

bool ThreadReadings::Read(int32_t thread, ThreadCounts* counts) {
  Whole* whole = Find(thread);
  if (whole == nullptr) whole = Open(thread);
  if (whole == nullptr) return false;
  whole->round = round_;
  char buffer[512];
  (void)ReadSched(whole->sched, &counts->ran_ns, &counts->queued_ns);
  ParseStat(ReadOwn(whole->stat, buffer, sizeof(buffer)), counts);
  ParseIo(ReadOwn(whole->io, buffer, sizeof(buffer)), counts);
  return true;
}

void ThreadReadings::ReadRest(int32_t thread, ThreadCounts* counts, std::array<char, 16>* name) {
  name->fill('\0');
  const Whole* const whole = Find(thread);
  if (whole == nullptr) return;
  char buffer[4096];
  const std::string_view text = ReadOwn(whole->status, buffer, sizeof(buffer));
  ParseStatus(text, counts);
  constexpr std::string_view kName = "Name:\t";
  if (!text.starts_with(kName)) return;
  const std::string_view line = text.substr(kName.size(), text.find('\n') - kName.size());
  (void)line.copy(name->data(), name->size() - 1);
}

void ThreadReadings::EndRound() {
  for (Whole& whole : whole_) {
    if (whole.thread != 0 && whole.round != round_) Free(&whole);
  }
}

void ThreadReadings::SeeOther(int32_t thread) {
  if (Find(thread) != nullptr || thread == gettid()) return;
  Other* found = std::ranges::find(others_, thread, &Other::thread);
  if (found == others_.end()) {
    found = std::ranges::find(others_, 0, &Other::thread);
    if (found == others_.end() || !OpenOfThread(&found->sched, thread, "schedstat")) return;
    found->thread = thread;
    // What it did before is nobody's.
    (void)ReadSched(found->sched, &found->ran_ns, &found->queued_ns);
  }
  found->is_there = true;
}

void ThreadReadings::ListOthers(Others* others) {
  if (tasks_.get() < 0 && !OpenOwn(&tasks_, "/proc/self/task")) return;
  const int tasks = tasks_.get();
  (void)syscall(SYS_lseek, tasks, 0, SEEK_SET);
  alignas(dirent64) char buffer[4096];
  for (long got = 0; (got = syscall(SYS_getdents64, tasks, buffer, sizeof(buffer))) > 0;) {
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const auto thread = static_cast<int32_t>(NumberIn(entry->d_name));
      if (thread == 0) continue;  // "." and ".."
      ++others->threads;
      SeeOther(thread);
    }
  }
}

ThreadReadings::Others ThreadReadings::ReadOthers() {
  sum_.read = sum_.threads = 0;
  for (Other& other : others_) other.is_there = false;
  ListOthers(&sum_);
  for (Other& other : others_) {
    if (other.thread == 0) continue;
    uint64_t ran_ns = 0, queued_ns = 0;
    if (other.is_there && ReadSched(other.sched, &ran_ns, &queued_ns)) {
      ++sum_.read;
      sum_.ran_ns += ran_ns - other.ran_ns;
      sum_.queued_ns += queued_ns - other.queued_ns;
      other.ran_ns = ran_ns;
      other.queued_ns = queued_ns;
      continue;
    }
    other.sched.Close();
    other.thread = 0;
  }
  return sum_;
}

void ThreadReadings::Close() {
  for (Whole& whole : whole_) Free(&whole);
  for (Other& other : others_) {
    other.sched.Close();
    other.thread = 0;
  }
  tasks_.Close();
}

void ThreadReadings::CloseInForkChild() { Close(); }

}  // namespace ranktap::agent::samples
