#include "collector/ingest/store/trace_store.h"

#include <pthread.h>

#include <filesystem>
#include <new>

#include "collector/ingest/host_clock.h"

namespace ranktap::collector {

using std::chrono::steady_clock;

TraceStore::TraceStore(RunRegistry registry, std::string collector_id, Reply reply, KeepLimits keep)
    : registry_(std::move(registry)),
      collector_id_(std::move(collector_id)),
      first_clock_(ReadClocks()),
      reply_(std::move(reply)),
      keeper_(
          keep,
          [this](const RunEntry* entry) {
            std::vector<SessionStore*> sessions;
            for (const auto& [id, stored] : sessions_) {
              if (stored->entry == entry) sessions.push_back(stored->store.get());
            }
            return sessions;
          },
          [this](Job job) { Post(std::move(job)); }, &stale_) {
  for (const auto& entry : registry_.runs()) WriteInfo(entry.get());
  thread_ = std::thread([this] { Run(); });
  (void)::pthread_setname_np(thread_.native_handle(), "ranktap-writer");
}

TraceStore::~TraceStore() {
  if (thread_.joinable()) (void)Finish([](RunInfo*) {});
}

void TraceStore::Post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void TraceStore::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto woken = [this] { return !jobs_.empty() || (finished_ && !keeper_.is_dumping()); };
    if (stale_.empty()) {
      wake_.wait(lock, woken);
    } else if (steady_clock::now() >= next_info_ || !wake_.wait_until(lock, next_info_, woken)) {
      lock.unlock();
      WriteStaleInfos();
      lock.lock();
      continue;
    }
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    if (!ended_during_dump_.empty() && !keeper_.is_dumping()) {
      for (const SessionId session : std::exchange(ended_during_dump_, {})) ForgetNow(session);
    }
    lock.lock();
  }
}

void TraceStore::WithinMemory(SessionId session, const std::function<void(StoredSession*)>& act) {
  StoredSession* const found = Find(session);
  if (found == nullptr) return;
  try {
    act(found);
    if (found->store->TakeInfoChanged()) stale_.insert(found->entry);
  } catch (const std::bad_alloc&) {
    const std::unique_ptr<StoredSession> gone = Take(session);
    for (TraceInfo info : gone->store->infos()) {
      if (info.status == TraceStatus::kOpen) {
        info.status = TraceStatus::kWriteFailed;
        info.detail = "the collector was out of memory";
      }
      gone->entry->info.traces.push_back(std::move(info));
    }
    reply_(RefusedReply{session, "the collector is out of memory"});
  }
}

// Its run goes on without it.
std::unique_ptr<TraceStore::StoredSession> TraceStore::Take(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return nullptr;
  std::unique_ptr<StoredSession> gone = std::move(found->second);
  sessions_.erase(found);
  const std::vector<TraceInfo>& infos = gone->store->infos();
  registry_.SessionEnded(gone->entry, gone->store->state().hello().session(),
                         infos.empty() ? "" : infos.back().file);
  stale_.insert(gone->entry);
  return gone;
}

TraceStore::StoredSession* TraceStore::Find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void TraceStore::Open(SessionId session, const v1::Hello& hello, uint32_t pid,
                      const PeerCredentials& peer) {
  Post([this, session, hello, pid, peer] { OpenNow(session, hello, pid, peer); });
}

void TraceStore::OpenNow(SessionId session, const v1::Hello& hello, uint32_t pid,
                         const PeerCredentials& peer) {
  const Result<RunRegistry::Place> place = registry_.PlaceFor(hello, peer.uid, peer.is_spool);
  if (!place) {
    if (problem_.empty()) problem_ = place.message();
    reply_(RefusedReply{session, place.message()});
    return;
  }
  auto stored = std::make_unique<StoredSession>(StoredSession{
      place->entry,
      {&place->entry->directory, &compressor_, collector_id_, first_clock_, keeper_.keeps()},
      nullptr});
  keeper_.Opened(place->entry);
  stored->store = std::make_unique<SessionStore>(&stored->context, hello, pid);
  if (place->earlier) stored->store->GoOnFrom(*place->earlier);
  sessions_.emplace(session, std::move(stored));
  const std::string& path = place->entry->directory.path();
  std::error_code error;
  const auto canonical = std::filesystem::canonical(path, error);
  reply_(OpenedReply{session, error ? path : canonical.string()});
}

void TraceStore::Store(SessionId session, uint64_t connection, uint64_t frames, FrameBlock block) {
  const uint64_t bytes = block.size;
  queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // std::function wants to copy its function; the block must not be.
  auto shared = std::make_shared<FrameBlock>(std::move(block));
  Post([this, session, connection, frames, bytes, shared] {
    if (shared->summary.frames > 0) {
      WithinMemory(session, [&](StoredSession* found) { found->store->Store(*shared); });
    }
    const uint64_t events = shared->summary.events;
    shared->Clear();  // here: the server's thread may come to the reply late
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    const StoredSession* const found = Find(session);
    if (found != nullptr) keeper_.Stored(found->entry, *found->store, events);
    const uint64_t memory = found == nullptr ? 0 : found->store->MemoryBytes();
    const KeptAmount kept =
        found == nullptr ? KeptAmount{} : RunKeeper::AmountOf(*found->entry, *found->store);
    reply_(StoredReply{session, connection, frames, memory, kept});
  });
}

void TraceStore::AskPositions(SessionId session, uint64_t connection) {
  Post([this, session, connection] {
    PositionsReply reply{session, connection, {}};
    if (const StoredSession* const found = Find(session)) {
      for (const auto& [id, writer] : found->store->state().writers()) {
        reply.next_events.emplace_back(id, writer.next_event);
      }
    }
    reply_(std::move(reply));
  });
}

void TraceStore::Close(SessionId session, std::shared_ptr<const Segment> segment,
                       bool process_is_dead, v1::Ending ending) {
  Post([this, session, segment = std::move(segment), process_is_dead, ending]() mutable {
    WithinMemory(session, [&](StoredSession* found) {
      SessionStore* const store = found->store.get();
      const bool all_said = store->state().said_goodbye() && store->AccountsAgree();
      if (segment && !all_said && store->Recover(*segment, process_is_dead)) {
        ending.set_how(v1::Ending::HOW_GOODBYE);
      }
      store->Close(ending);
      keeper_.Closed(found->entry, *store);
    });
    reply_(ClosedReply{session});
  });
}

void TraceStore::Forget(SessionId session) {
  Post([this, session] { ForgetNow(session); });
}

void TraceStore::ForgetNow(SessionId session) {
  if (keeper_.is_dumping()) return ended_during_dump_.push_back(session);
  if (StoredSession* const found = Find(session)) keeper_.Ended(found->entry, found->store.get());
  const std::unique_ptr<StoredSession> gone = Take(session);
  if (gone == nullptr) return;
  for (const TraceInfo& info : gone->store->infos()) gone->entry->info.traces.push_back(info);
}

void TraceStore::Dump(const std::vector<SessionId>& sessions, DumpOrder order) {
  Post([this, sessions, order = std::move(order)] {
    std::set<RunEntry*> entries;
    for (const SessionId session : sessions) {
      if (const StoredSession* const found = Find(session)) entries.insert(found->entry);
    }
    keeper_.Dump(entries, order);
  });
}

RunInfo TraceStore::InfoOf(const RunEntry& entry) const {
  RunInfo info = entry.info;
  for (const auto& [id, stored] : sessions_) {
    if (stored->entry != &entry) continue;
    for (const TraceInfo& trace : stored->store->infos()) info.traces.push_back(trace);
  }
  return info;
}

void TraceStore::WriteStaleInfos() {
  const auto start = steady_clock::now();
  for (RunEntry* const entry : std::exchange(stale_, {})) WriteInfo(entry);
  registry_.CloseIdleRuns();
  const auto end = steady_clock::now();
  constexpr int kShareOfTime = 20;
  next_info_ = end + kShareOfTime * (end - start);
}

void TraceStore::WriteInfo(RunEntry* entry) {
  const std::optional<Failure> failure = entry->directory.WriteInfo(InfoOf(*entry));
  if (failure && problem_.empty()) problem_ = failure->message;
}

RunInfo TraceStore::Finish(const std::function<void(RunInfo*)>& finish) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_one();
  thread_.join();
  for (const auto& entry : registry_.runs()) {
    finish(&entry->info);
    WriteInfo(entry.get());
  }
  return registry_.runs().empty() ? RunInfo{} : InfoOf(*registry_.runs().front());
}

}  // namespace ranktap::collector
