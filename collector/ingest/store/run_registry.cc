#include "collector/ingest/store/run_registry.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "collector/file/owned_file.h"
#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// Ranks of a job without a name come and go; one that comes this soon is of the same run.
constexpr uint64_t kLingerNs = 30'000'000'000;
constexpr size_t kMaxJobName = 64;
constexpr mode_t kUserMode = 0711;
constexpr const char* kInfoName = "run.json";
// Most names read from one directory, and most bytes of one run.json: some 10,000 traces.
constexpr size_t kMostNames = 1u << 16;
// The longest that one user's files may delay a start: 100,000 honest ones take less.
constexpr uint64_t kScanNs = 10'000'000'000;
constexpr size_t kMostInfoBytes = 8u << 20;
// Limits for one user: runs that nobody is in and that stay open, for the next process of a row of
// short ones; processes that are gone and may come back.
constexpr size_t kMostIdle = 8;
constexpr size_t kMostRemembered = 1u << 14;
// Jobs whose run is closed and that would go on in it, of all users.
constexpr size_t kMostIdleKinds = 1u << 12;

std::string SafeName(const std::string& text) {
  std::string name = text.substr(0, kMaxJobName);
  for (char& byte : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
    if (!plain) byte = '-';
  }
  return name.empty() ? "run" : name;
}

std::string Stamp() {
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  return stamp;
}

bool IsOpenTrace(const std::string& name) { return name.ends_with(".trace.part"); }
bool IsTrace(const std::string& name) { return name.ends_with(".trace") || IsOpenTrace(name); }

std::string WithoutPart(const std::string& name) {
  constexpr std::string_view kPart = ".part";
  return IsOpenTrace(name) ? name.substr(0, name.size() - kPart.size()) : name;
}

v1::Ending EndingOf(const char* detail) {
  v1::Ending ending;
  ending.set_how(v1::Ending::HOW_ABANDONED);
  ending.set_detail(detail);
  return ending;
}

// Of a collector that was killed meanwhile. What it copied is still in the run.
void RemoveHalfDump(const FileDescriptor& run, const std::string& name, uid_t uid,
                    const std::string& path) {
  if (const auto dump = OpenOwnedDirectory(run.get(), name, uid, path + "/" + name)) {
    for (const std::string& file : NamesIn(dump->get(), kMostNames)) {
      (void)::unlinkat(dump->get(), file.c_str(), 0);
    }
  }
  (void)::unlinkat(run.get(), name.c_str(), AT_REMOVEDIR);
}

}  // namespace

RunRegistry::RunRegistry(RunDirectory directory, RunInfo info) {
  runs_.push_back(std::make_unique<RunEntry>(RunEntry{std::move(directory), std::move(info)}));
}

Result<RunRegistry> RunRegistry::Open(const std::string& root, RunInfo info) {
  RunRegistry registry;
  registry.root_ = root;
  registry.common_ = std::move(info);
  std::error_code ignored;  // what follows says what is wrong
  fs::create_directories(root, ignored);
  registry.lock_.Reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!registry.lock_.valid() || ::access(root.c_str(), W_OK | X_OK) != 0) {
    return SystemFailure(fmt::format("{}: could not write there", root), errno);
  }
  if (::flock(registry.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Failure{
        fmt::format("{}: another collector writes there; name another directory with -o", root)};
  }
  for (const std::string& name : NamesIn(registry.lock_.get(), kMostNames)) {
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), uid);
    if (error == std::errc() && end == name.data() + name.size()) registry.ScanUser(uid);
  }
  return registry;
}

std::string RunRegistry::PathOf(uid_t uid, const std::string& run) const {
  return root_ + "/" + std::to_string(uid) + (run.empty() ? "" : "/" + run);
}

// A user's directory is ours, so that no user can put anything in the place of a run.
Result<FileDescriptor> RunRegistry::OpenUser(uid_t uid) const {
  return OpenOwnedDirectory(lock_.get(), std::to_string(uid), ::geteuid(), PathOf(uid));
}

void RunRegistry::ScanUser(uid_t uid) {
  const Result<FileDescriptor> user = OpenUser(uid);
  if (!user) {
    problems_.push_back(user.message());
    return;
  }
  const uint64_t start = MonotonicRawNs();
  for (const std::string& run : NamesIn(user->get(), kMostNames)) {
    if (MonotonicRawNs() - start > kScanNs) {
      problems_.push_back(
          fmt::format("{}: takes long to look through; the rest is left as it is", PathOf(uid)));
      return;
    }
    ScanRun(*user, uid, run, start + kScanNs);
  }
}

void RunRegistry::ScanRun(const FileDescriptor& user, uid_t uid, const std::string& run,
                          uint64_t until_ns) {
  struct stat status {};
  if (::fstatat(user.get(), run.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISDIR(status.st_mode)) return;
  const Result<FileDescriptor> directory =
      OpenOwnedDirectory(user.get(), run, uid, PathOf(uid, run));
  if (!directory) {
    problems_.push_back(directory.message());
    return;
  }
  std::vector<std::string> files = NamesIn(directory->get(), kMostNames);
  for (const std::string& name : files) {
    if (IsHalfDump(name)) RemoveHalfDump(*directory, name, uid, PathOf(uid, run));
  }
  std::erase_if(files, [](const std::string& name) { return !IsTrace(name); });
  for (const std::string& file : files) {
    if (MonotonicRawNs() > until_ns) break;
    ScanFile(*directory, uid, run, file);
  }
  // A collector that was killed before anything came to disk left this. A directory with more
  // stays.
  if (!files.empty()) return;
  (void)::unlinkat(directory->get(), kInfoName, 0);
  (void)::unlinkat(user.get(), run.c_str(), AT_REMOVEDIR);
}

void RunRegistry::ScanFile(const FileDescriptor& directory, uid_t uid, const std::string& run,
                           const std::string& file) {
  const std::string path = PathOf(uid, run) + "/" + file;
  Result<FileDescriptor> opened =
      OpenOwnedFile(directory.get(), file, uid, path, IsOpenTrace(file) ? O_RDWR : O_RDONLY);
  if (!opened) {
    problems_.push_back(opened.message());
    return;
  }
  const std::optional<FileHeader> header = ReadFileHeader(*opened);
  std::string where = file;
  if (IsOpenTrace(file)) {
    const Result<std::string> closed = Seal(std::move(*opened), directory.get(), path);
    if (!closed) {
      problems_.push_back(closed.message());
      return;
    }
    where = closed->substr(closed->rfind('/') + 1);
    sealed_.push_back(*closed);
  }
  if (!header) return;
  const std::string session(reinterpret_cast<const char*>(header->session),
                            sizeof(header->session));
  Remember(uid, session, {run, where, header->created_realtime_ns});
}

Result<std::string> RunRegistry::Seal(FileDescriptor file, int directory, const std::string& path) {
  const Result<TraceTail> tail = ReadTail(file, path);
  if (tail) {
    return SealTrace(std::move(file), directory, *tail, EndingOf("its collector was killed"));
  }
  const Result<TraceTail> nothing = TailOfNothing(file, path);
  if (!nothing) return Failure{tail.message()};
  return SealTrace(std::move(file), directory, *nothing,
                   EndingOf("its collector was killed before the first event was stored"));
}

// The latest file of a session counts.
void RunRegistry::Remember(uid_t uid, const std::string& session, EarlierFile file) {
  const auto [at, is_new] = earlier_.try_emplace({uid, session});
  if (file.created_realtime_ns < at->second.created_realtime_ns) return;
  at->second = std::move(file);
  std::deque<std::string>& sessions = remembered_[uid];
  if (is_new) sessions.push_back(session);
  if (sessions.size() <= kMostRemembered) return;
  earlier_.erase({uid, sessions.front()});
  sessions.pop_front();
}

Result<RunRegistry::Place> RunRegistry::PlaceFor(const v1::Hello& hello, uid_t uid,
                                                 bool from_spool) {
  Place place;
  if (root_.empty()) {
    place.entry = runs_.front().get();
    ++place.entry->sessions;
    return place;
  }
  const auto earlier = earlier_.find({uid, hello.session()});
  if (earlier != earlier_.end()) {
    Result<Place> found = PlaceOf(earlier->second, hello.session(), uid);
    if (found) place = std::move(*found);
  }
  if (place.entry == nullptr) {
    const Result<RunEntry*> entry = OpenRun(hello, uid, from_spool);
    if (!entry) return Failure{entry.message()};
    place.entry = *entry;
  }
  ++place.entry->sessions;
  place.entry->info.end_realtime_ns.reset();
  return place;
}

// Between two collectors a user may have put anything in a file's place.
Result<RunRegistry::Place> RunRegistry::PlaceOf(const EarlierFile& earlier,
                                                const std::string& session, uid_t uid) {
  const std::string path = PathOf(uid, earlier.run);
  const Result<FileDescriptor> user = OpenUser(uid);
  if (!user) return Failure{user.message()};
  Result<FileDescriptor> directory = OpenOwnedDirectory(user->get(), earlier.run, uid, path);
  if (!directory) return Failure{directory.message()};
  const Result<FileDescriptor> file =
      OpenOwnedFile(directory->get(), earlier.file, uid, path + "/" + earlier.file);
  if (!file) return Failure{file.message()};
  Result<TraceTail> tail = ReadTail(*file, path + "/" + earlier.file);
  if (!tail) return Failure{tail.message()};
  if (tail->session != session || tail->state.hello().session() != session) {
    return Failure{fmt::format("{}: of another process by now", tail->path)};
  }
  Place place;
  place.earlier = std::move(*tail);
  place.entry = EntryIn(std::move(*directory), uid, earlier.run);
  return place;
}

Result<RunEntry*> RunRegistry::OpenRun(const v1::Hello& hello, uid_t uid, bool from_spool) {
  const std::string& job = hello.rank().job();
  const Kind kind(uid, !job.empty() ? "job-" + job : from_spool ? "spools" : "run");
  const uint64_t now = MonotonicRawNs();
  const auto goes_on = [&](size_t sessions, uint64_t last_closed_ns) {
    return !job.empty() || sessions > 0 || now - last_closed_ns < kLingerNs;
  };
  const auto current = current_.find(kind);
  if (current != current_.end() &&
      goes_on(current->second->sessions, current->second->last_closed_ns)) {
    return current->second;
  }
  Result<RunEntry*> entry = Failure{};
  const auto idle = idle_.find(kind);
  if (idle != idle_.end() && goes_on(0, idle->second.last_closed_ns)) {
    entry = ReopenRun(uid, idle->second.run);
  }
  if (!entry) entry = MakeRun(hello, uid, kind.second);
  if (!entry) return entry;
  idle_.erase(kind);
  (*entry)->kind = kind.second;
  return current_[kind] = *entry;
}

Result<RunEntry*> RunRegistry::MakeRun(const v1::Hello& hello, uid_t uid, const std::string& kind) {
  const std::string name = std::to_string(uid);
  // A user finds the own runs here and cannot make any.
  if (::mkdirat(lock_.get(), name.c_str(), kUserMode) != 0 && errno != EEXIST) {
    return SystemFailure(fmt::format("{}: could not create", PathOf(uid)), errno);
  }
  const Result<FileDescriptor> user = OpenUser(uid);
  if (!user) return Failure{user.message()};
  Result<RunDirectory> directory =
      RunDirectory::CreateIn(user->get(), PathOf(uid), SafeName(kind) + "-" + Stamp());
  if (!directory) return Failure{directory.message()};
  if (uid != ::geteuid()) {
    if (auto failure = directory->GiveTo(uid)) return *failure;
  }
  auto entry = std::make_unique<RunEntry>(RunEntry{std::move(*directory), common_});
  entry->uid = uid;
  entry->name = fs::path(entry->directory.path()).filename();
  entry->info.start_realtime_ns = RealtimeNs();
  for (const std::string& word : hello.process().command_line()) {
    entry->info.command.push_back(word);
  }
  runs_.push_back(std::move(entry));
  return runs_.back().get();
}

Result<RunEntry*> RunRegistry::ReopenRun(uid_t uid, const std::string& run) {
  const Result<FileDescriptor> user = OpenUser(uid);
  if (!user) return Failure{user.message()};
  Result<FileDescriptor> directory = OpenOwnedDirectory(user->get(), run, uid, PathOf(uid, run));
  if (!directory) return Failure{directory.message()};
  return EntryIn(std::move(*directory), uid, run);
}

// A run that is there: what its run.json says of other traces stays.
RunEntry* RunRegistry::EntryIn(FileDescriptor directory, uid_t uid, const std::string& run) {
  for (const auto& entry : runs_) {
    if (entry->uid == uid && entry->name == run) return entry.get();
  }
  const std::string path = PathOf(uid, run);
  RunInfo info = common_;
  const Result<std::string> text =
      ReadOwnedFile(directory.get(), kInfoName, uid, path + "/" + kInfoName, kMostInfoBytes);
  if (text) {
    if (Result<RunInfo> known = ParseRunInfo(*text, path + "/" + kInfoName)) info = *known;
  }
  for (TraceInfo& trace : info.traces) {
    if (trace.status != TraceStatus::kOpen) continue;
    trace.status = TraceStatus::kAbandoned;
    trace.detail = "its collector was killed";
    trace.file = WithoutPart(trace.file);
  }
  auto entry = std::make_unique<RunEntry>(
      RunEntry{RunDirectory(path, std::move(directory), uid), std::move(info)});
  entry->uid = uid;
  entry->name = run;
  runs_.push_back(std::move(entry));
  return runs_.back().get();
}

void RunRegistry::SessionEnded(RunEntry* entry, const std::string& session,
                               const std::string& file) {
  if (entry->sessions > 0) --entry->sessions;
  entry->last_closed_ns = MonotonicRawNs();
  if (root_.empty()) return;
  if (entry->sessions == 0) entry->info.end_realtime_ns = RealtimeNs();
  if (!file.empty()) Remember(entry->uid, session, {entry->name, file, RealtimeNs()});
}

void RunRegistry::CloseIdleRuns() {
  if (root_.empty()) return;
  const uint64_t now = MonotonicRawNs();
  std::map<uid_t, size_t> idle;
  // The youngest come last.
  for (size_t i = runs_.size(); i-- > 0;) {
    const RunEntry& entry = *runs_[i];
    if (entry.sessions > 0) continue;
    if (++idle[entry.uid] <= kMostIdle && now - entry.last_closed_ns < kLingerNs) continue;
    const Kind kind(entry.uid, entry.kind);
    if (const auto at = current_.find(kind); at != current_.end() && at->second == &entry) {
      current_.erase(at);
      idle_[kind] = {entry.name, entry.last_closed_ns};
    }
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(i));
  }
  while (idle_.size() > kMostIdleKinds) {
    idle_.erase(std::min_element(idle_.begin(), idle_.end(), [](const auto& a, const auto& b) {
      return a.second.last_closed_ns < b.second.last_closed_ns;
    }));
  }
}

}  // namespace ranktap::collector
