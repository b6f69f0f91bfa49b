#include "collector/ingest/run_shelf.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "collector/file/trace_reader.h"
#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// Ranks of a job without a name come and go; one that comes this soon is of the same run.
constexpr uint64_t kLingerNs = 30'000'000'000;
constexpr size_t kMaxJobName = 64;

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

// The directories in `path`, symbolic links left out.
std::vector<fs::path> Directories(const std::string& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (!entry.is_symlink(error) && entry.is_directory(error)) found.push_back(entry.path());
  }
  return found;
}

std::optional<Failure> MakeDirectory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return std::nullopt;
  return SystemFailure(path + ": could not create", errno);
}

}  // namespace

RunShelf::RunShelf(RunDirectory directory, RunInfo info) {
  books_.push_back(std::make_unique<RunBook>(RunBook{std::move(directory), std::move(info)}));
}

Result<RunShelf> RunShelf::Open(const std::string& root, RunInfo info) {
  RunShelf shelf;
  shelf.root_ = root;
  shelf.common_ = std::move(info);
  std::error_code ignored;  // what follows says what is wrong
  fs::create_directories(root, ignored);
  shelf.lock_.Reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!shelf.lock_.valid() || ::access(root.c_str(), W_OK | X_OK) != 0) {
    return SystemFailure(root + ": could not write there", errno);
  }
  if (::flock(shelf.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Failure{root + ": another collector writes there; name another directory with -o"};
  }
  for (const fs::path& user : Directories(root)) {
    const std::string name = user.filename();
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), uid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    for (const fs::path& run : Directories(user)) shelf.ScanRun(run, uid);
  }
  return shelf;
}

void RunShelf::ScanRun(const std::string& path, uint32_t uid) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (IsTrace(entry.path().filename()) && !entry.is_symlink(error)) {
      files.push_back(entry.path());
    }
  }
  for (const std::string& file : files) ScanFile(file, uid);
  // Of a collector that was killed before anything came to disk. A directory with more is left.
  if (!files.empty()) return;
  fs::remove(fs::path(path) / "run.json", error);
  fs::remove(path, error);
}

void RunShelf::ScanFile(const std::string& path, uint32_t uid) {
  const Result<TraceReader> reader = TraceReader::Open(path);
  if (!reader) {
    problems_.push_back(reader.message());
    return;
  }
  const std::string session(reinterpret_cast<const char*>(reader->header().session),
                            sizeof(reader->header().session));
  std::string where = path;
  if (IsOpenTrace(path)) {
    const Result<TraceTail> tail = ReadTail(path);
    v1::Ending ending;
    ending.set_how(v1::Ending::HOW_ABANDONED);
    ending.set_detail("its collector was killed");
    const Result<std::string> closed =
        tail ? SealTrace(*tail, ending) : Result<std::string>(Failure{tail.message()});
    if (!closed) {
      problems_.push_back(closed.message());
      return;
    }
    where = *closed;
    sealed_.push_back(where);
  }
  EarlierFile& file = earlier_[{uid, session}];
  if (reader->header().created_realtime_ns < file.created_realtime_ns) return;
  file = {where, reader->header().created_realtime_ns};
}

Result<RunShelf::Place> RunShelf::PlaceFor(const v1::Hello& hello, uid_t uid, bool from_spool) {
  Place place;
  if (root_.empty()) {
    place.book = books_.front().get();
    ++place.book->sessions;
    return place;
  }
  Result<RunBook*> book = Failure{};
  const auto earlier = earlier_.find({uid, hello.session()});
  if (earlier != earlier_.end()) {
    Result<TraceTail> tail = ReadTail(earlier->second.path);
    if (tail) {
      place.earlier = std::move(*tail);
      book = ReopenBook(fs::path(earlier->second.path).parent_path(), uid);
    } else {
      problems_.push_back(tail.message());
    }
  }
  if (!book) book = OpenBook(hello, uid, from_spool);
  if (!book) return Failure{book.message()};
  place.book = *book;
  ++place.book->sessions;
  place.book->info.end_realtime_ns.reset();
  return place;
}

Result<RunBook*> RunShelf::OpenBook(const v1::Hello& hello, uid_t uid, bool from_spool) {
  const std::string& job = hello.rank().job();
  const std::string kind = !job.empty() ? "job-" + job : from_spool ? "spools" : "run";
  RunBook*& current = current_[std::to_string(uid) + "/" + kind];
  const bool goes_on =
      current != nullptr && (!job.empty() || current->sessions > 0 ||
                             MonotonicRawNs() - current->last_closed_ns < kLingerNs);
  if (goes_on) return current;
  const std::string parent = root_ + "/" + std::to_string(uid);
  // A user finds the own runs here and cannot make any.
  if (auto failure = MakeDirectory(parent, 0711)) return *failure;
  const std::string name = SafeName(kind) + "-" + Stamp();
  Result<RunDirectory> directory = RunDirectory::CreateNew(parent + "/", name);
  if (!directory) return Failure{directory.message()};
  if (uid != ::geteuid()) {
    if (auto failure = directory->GiveTo(uid)) return *failure;
  }
  auto book = std::make_unique<RunBook>(RunBook{std::move(*directory), common_});
  book->info.start_realtime_ns = RealtimeNs();
  for (const std::string& word : hello.process().command_line()) {
    book->info.command.push_back(word);
  }
  current = book.get();
  books_.push_back(std::move(book));
  return current;
}

// The run of an earlier collector: what its run.json says of other traces stays.
Result<RunBook*> RunShelf::ReopenBook(const std::string& path, uid_t uid) {
  for (const auto& book : books_) {
    if (book->directory.path() == path) return book.get();
  }
  Result<RunDirectory> directory = RunDirectory::OpenExisting(path);
  if (!directory) return Failure{directory.message()};
  if (uid != ::geteuid()) {
    if (auto failure = directory->GiveTo(uid)) return *failure;
  }
  RunInfo info = common_;
  std::ifstream input(path + "/run.json", std::ios::binary);
  std::stringstream text;
  text << input.rdbuf();
  if (Result<RunInfo> known = ParseRunInfo(text.str(), path + "/run.json")) info = *known;
  for (TraceInfo& trace : info.traces) {
    if (trace.status != TraceStatus::kOpen) continue;
    trace.status = TraceStatus::kAbandoned;
    trace.detail = "its collector was killed";
    if (IsOpenTrace(trace.file)) trace.file.resize(trace.file.size() - std::string(".part").size());
  }
  books_.push_back(std::make_unique<RunBook>(RunBook{std::move(*directory), std::move(info)}));
  return books_.back().get();
}

void RunShelf::Leave(RunBook* book) {
  if (book->sessions > 0) --book->sessions;
  book->last_closed_ns = MonotonicRawNs();
  if (!root_.empty() && book->sessions == 0) book->info.end_realtime_ns = RealtimeNs();
}

}  // namespace ranktap::collector
