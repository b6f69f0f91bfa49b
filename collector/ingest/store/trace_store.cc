#include "collector/ingest/store/trace_store.h"

#include <pthread.h>

#include <filesystem>
#include <new>

#include "collector/ingest/host_clock.h"

namespace ranktap::collector {

using std::chrono::steady_clock;

TraceStore::TraceStore(RunRegistry shelf, std::string collector_id, Reply reply)
    : shelf_(std::move(shelf)),
      collector_id_(std::move(collector_id)),
      first_clock_(ReadClocks()),
      reply_(std::move(reply)) {
  for (const auto& book : shelf_.books()) WriteInfo(book.get());
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
    const auto woken = [this] { return !jobs_.empty() || finished_; };
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
    lock.lock();
  }
}

void TraceStore::WithinMemory(SessionId session, const std::function<void(Shelved*)>& act) {
  Shelved* const found = Find(session);
  if (found == nullptr) return;
  try {
    act(found);
    if (found->store->TakeInfoChanged()) stale_.insert(found->book);
  } catch (const std::bad_alloc&) {
    const std::unique_ptr<Shelved> gone = Take(session);
    for (TraceInfo info : gone->store->infos()) {
      if (info.status == TraceStatus::kOpen) {
        info.status = TraceStatus::kWriteFailed;
        info.detail = "the collector was out of memory";
      }
      gone->book->info.traces.push_back(std::move(info));
    }
    reply_(RefusedReply{session, "the collector is out of memory"});
  }
}

// Its run goes on without it.
std::unique_ptr<TraceStore::Shelved> TraceStore::Take(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return nullptr;
  std::unique_ptr<Shelved> gone = std::move(found->second);
  sessions_.erase(found);
  const std::vector<TraceInfo>& infos = gone->store->infos();
  shelf_.Leave(gone->book, gone->store->state().hello().session(),
               infos.empty() ? "" : infos.back().file);
  stale_.insert(gone->book);
  return gone;
}

TraceStore::Shelved* TraceStore::Find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void TraceStore::Open(SessionId session, const v1::Hello& hello, uint32_t pid,
                      const PeerCredentials& peer) {
  Post([this, session, hello, pid, peer] { OpenNow(session, hello, pid, peer); });
}

void TraceStore::OpenNow(SessionId session, const v1::Hello& hello, uint32_t pid,
                         const PeerCredentials& peer) {
  const Result<RunRegistry::Place> place = shelf_.PlaceFor(hello, peer.uid, peer.is_spool);
  if (!place) {
    if (problem_.empty()) problem_ = place.message();
    reply_(RefusedReply{session, place.message()});
    return;
  }
  auto shelved = std::make_unique<Shelved>(Shelved{
      place->book, {&place->book->directory, &compressor_, collector_id_, first_clock_}, nullptr});
  shelved->store = std::make_unique<SessionStore>(&shelved->context, hello, pid);
  if (place->earlier) shelved->store->GoOnFrom(*place->earlier);
  sessions_.emplace(session, std::move(shelved));
  const std::string& path = place->book->directory.path();
  std::error_code error;
  const auto canonical = std::filesystem::canonical(path, error);
  reply_(OpenedReply{session, error ? path : canonical.string()});
}

void TraceStore::Store(SessionId session, uint64_t connection, uint64_t frames, FrameBlock block) {
  const uint64_t bytes = block.bytes.capacity();
  queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // std::function wants to copy its function; the block must not be.
  auto shared = std::make_shared<FrameBlock>(std::move(block));
  Post([this, session, connection, frames, bytes, shared] {
    if (shared->summary.frames > 0) {
      WithinMemory(session, [&](Shelved* found) { found->store->Store(*shared); });
    }
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    const Shelved* const found = Find(session);
    const uint64_t memory = found == nullptr ? 0 : found->store->MemoryBytes();
    reply_(StoredReply{session, connection, frames, memory, std::move(*shared)});
  });
}

void TraceStore::AskPositions(SessionId session, uint64_t connection) {
  Post([this, session, connection] {
    PositionsReply reply{session, connection, {}};
    if (const Shelved* const found = Find(session)) {
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
    WithinMemory(session, [&](Shelved* found) {
      SessionStore* const store = found->store.get();
      const bool all_said = store->state().said_goodbye() && store->AccountsAgree();
      if (segment && !all_said && store->Recover(*segment, process_is_dead)) {
        ending.set_how(v1::Ending::HOW_GOODBYE);
      }
      store->Close(ending);
    });
    reply_(ClosedReply{session});
  });
}

void TraceStore::Forget(SessionId session) {
  Post([this, session] {
    const std::unique_ptr<Shelved> gone = Take(session);
    if (gone == nullptr) return;
    for (const TraceInfo& info : gone->store->infos()) gone->book->info.traces.push_back(info);
  });
}

RunInfo TraceStore::InfoOf(const RunEntry& book) const {
  RunInfo info = book.info;
  for (const auto& [id, shelved] : sessions_) {
    if (shelved->book != &book) continue;
    for (const TraceInfo& trace : shelved->store->infos()) info.traces.push_back(trace);
  }
  return info;
}

void TraceStore::WriteStaleInfos() {
  const auto start = steady_clock::now();
  for (RunEntry* const book : std::exchange(stale_, {})) WriteInfo(book);
  shelf_.Rest();
  const auto end = steady_clock::now();
  constexpr int kShareOfTime = 20;
  next_info_ = end + kShareOfTime * (end - start);
}

void TraceStore::WriteInfo(RunEntry* book) {
  const std::optional<Failure> failure = book->directory.WriteInfo(InfoOf(*book));
  if (failure && problem_.empty()) problem_ = failure->message;
}

RunInfo TraceStore::Finish(const std::function<void(RunInfo*)>& finish) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_one();
  thread_.join();
  for (const auto& book : shelf_.books()) {
    finish(&book->info);
    WriteInfo(book.get());
  }
  return shelf_.books().empty() ? RunInfo{} : InfoOf(*shelf_.books().front());
}

}  // namespace ranktap::collector
