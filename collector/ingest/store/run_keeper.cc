#include "collector/ingest/store/run_keeper.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "collector/file/owned_file.h"
#include "collector/file/trace_join.h"
#include "collector/file/trace_tail.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/store/run_dump.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostKeptNames = 1u << 16;

const std::string& TokenOf(const SessionStore& session) {
  return session.state().hello().session();
}

uid_t OwnerOf(int directory) {
  struct stat status {};
  return ::fstat(directory, &status) == 0 ? status.st_uid : ::geteuid();
}

// Closed files of an earlier collector, by when they were begun, as one segment that ends now.
std::unique_ptr<KeptSegments> AdoptFiles(const RunDirectory& directory, KeepLimits limits) {
  std::vector<std::tuple<uint64_t, std::string, std::string, uint64_t>> files;
  const uid_t owner = OwnerOf(directory.descriptor());
  for (const std::string& name : NamesIn(directory.descriptor(), kMostKeptNames)) {
    if (!name.ends_with(".trace")) continue;
    const Result<FileDescriptor> file = OpenOwnedFile(directory.descriptor(), name, owner, name);
    if (!file) continue;
    const std::optional<FileHeader> header = ReadFileHeader(*file);
    struct stat status {};
    if (!header || ::fstat(file->get(), &status) != 0) continue;
    files.emplace_back(
        header->created_realtime_ns,
        std::string(reinterpret_cast<const char*>(header->session), sizeof(header->session)), name,
        static_cast<uint64_t>(status.st_size));
  }
  std::ranges::sort(files);
  const uint64_t now = MonotonicRawNs(), realtime = RealtimeNs();
  const uint64_t begun = files.empty() ? realtime : std::min(realtime, std::get<0>(files[0]));
  auto kept = std::make_unique<KeptSegments>(limits, now - std::min(now, realtime - begun));
  for (const auto& [created, session, name, bytes] : files) kept->Add(session, name, bytes);
  kept->EndSegment(now);
  return kept;
}

}  // namespace

void RunKeeper::Opened(RunEntry* entry) {
  if (!keeps() || entry->kept != nullptr) return;
  entry->kept = AdoptFiles(entry->directory, limits_);
}

void RunKeeper::Stored(RunEntry* entry, const SessionStore& session, uint64_t events) {
  if (entry->kept == nullptr || events == 0) return;
  entry->kept->NoteEvents(session.open_bytes());
  if (!entry->kept->IsDue(MonotonicRawNs())) return;
  EndSegment(entry);
  if (!is_dumping_) RemoveOld(entry);
}

KeptAmount RunKeeper::AmountOf(const RunEntry& entry, const SessionStore& session) {
  if (entry.kept == nullptr) return {};
  return {entry.kept->since_ns(), entry.kept->BytesOf(TokenOf(session)) + session.open_bytes()};
}

void RunKeeper::EndSegment(RunEntry* entry) {
  for (SessionStore* const session : sessions_(entry)) {
    if (session->EndSegment()) Closed(entry, *session);
  }
  entry->kept->EndSegment(MonotonicRawNs());
  stale_->insert(entry);
}

void RunKeeper::Closed(RunEntry* entry, const SessionStore& session) {
  if (entry->kept == nullptr || session.infos().empty() || session.has_open_file()) return;
  const TraceInfo& last = session.infos().back();
  const bool is_whole = last.status != TraceStatus::kWriteFailed;
  if (is_whole && !entry->kept->Has(last.file)) {
    entry->kept->Add(TokenOf(session), last.file, last.bytes);
  }
}

void RunKeeper::RemoveOld(RunEntry* entry) {
  const std::vector<std::string> gone = entry->kept->TakeOld();
  if (gone.empty()) return;
  for (const std::string& file : gone) entry->directory.Remove(file);
  for (SessionStore* const session : sessions_(entry)) session->ForgetFiles(gone, nullptr);
  std::erase_if(entry->info.traces, [&](const TraceInfo& trace) {
    return std::ranges::find(gone, trace.file) != gone.end();
  });
  stale_->insert(entry);
}

// Where the disk has no room for it the files stay as they are.
void RunKeeper::Ended(RunEntry* entry, SessionStore* session) {
  if (entry->kept == nullptr || session->infos().empty()) return;
  const std::vector<std::string> files = entry->kept->FilesOf(TokenOf(*session));
  if (files.size() < 2) return;
  RunDirectory& directory = entry->directory;
  TraceInfo info = session->infos().back();
  const TraceName name{.rank = info.rank, .pid = info.pid};
  Result<RunDirectory::Part> part = directory.CreatePart(name);
  if (!part) return;
  const Result<uint64_t> bytes = JoinTraces(directory.descriptor(), OwnerOf(directory.descriptor()),
                                            directory.path(), files, std::move(part->file));
  if (!bytes) return directory.Remove(part->file_name());
  for (const std::string& file : files) directory.Remove(file);
  const Result<std::string> published = directory.Publish(*part, name, true);
  info.file = published ? *published : part->file_name();
  info.bytes = *bytes;
  session->ForgetFiles(files, &info);
  // An earlier collector's.
  std::erase_if(entry->info.traces, [&](const TraceInfo& trace) {
    return std::ranges::find(files, trace.file) != files.end();
  });
  entry->kept->Replace(TokenOf(*session), info.file, info.bytes);
}

void RunKeeper::Dump(const std::set<RunEntry*>& entries, DumpOrder order) {
  std::vector<RunDump> dumps;
  const uint64_t now = MonotonicRawNs(), realtime = RealtimeNs();
  for (RunEntry* const entry : entries) {
    if (entry->kept == nullptr || is_dumping_) continue;
    EndSegment(entry);
    const KeptSegments::Interval interval =
        entry->kept->Since(order.last_ns == 0 ? 0 : now - std::min(now, order.last_ns));
    const int descriptor = entry->directory.descriptor();
    RunDump dump{.directory = FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)),
                 .path = entry->directory.path(),
                 .owner = OwnerOf(descriptor),
                 .info = entry->info,
                 .processes = {},
                 .begin_realtime_ns = realtime - (now - std::min(now, interval.begin_ns)),
                 .end_realtime_ns = realtime};
    std::map<std::string, TraceInfo> infos;  // by file
    for (const TraceInfo& info : entry->info.traces) infos[info.file] = info;
    for (const SessionStore* const session : sessions_(entry)) {
      for (const TraceInfo& info : session->infos()) infos[info.file] = info;
    }
    for (const auto& [session, files] : interval.files) {
      dump.processes[session] = {files, infos[files.back()]};
    }
    dump.info.traces.clear();
    dump.info.start_realtime_ns = dump.begin_realtime_ns;
    dump.info.end_realtime_ns = realtime;
    dump.info.metadata["dump"] = order.reason.empty() ? "ranktap dump" : order.reason;
    dumps.push_back(std::move(dump));
  }
  if (dumps.empty()) {
    v1::Dump refused;
    refused.set_problem(is_dumping_ ? "another dump is being made; ask again in a moment"
                                    : "its collector keeps all of it: there is nothing to dump. "
                                      "Start it with --keep 60s");
    return order.done({refused});
  }
  is_dumping_ = true;
  dumper_ = std::jthread(
      [this, entries, done = std::move(order.done), dumps = std::move(dumps)]() mutable {
        (void)::pthread_setname_np(::pthread_self(), "ranktap-dump");
        std::vector<v1::Dump> told;
        for (RunDump& dump : dumps) told.push_back(WriteDump(std::move(dump)));
        done(std::move(told));
        post_([this] { is_dumping_ = false; });
      });
}

}  // namespace ranktap::collector
