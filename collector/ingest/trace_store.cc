#include "collector/ingest/trace_store.h"

#include <pthread.h>

#include "collector/ingest/host_clock.h"

namespace ranktap::collector {

TraceStore::TraceStore(RunDirectory directory, RunInfo info, std::string collector_id, Reply reply)
    : directory_(std::move(directory)),
      info_(std::move(info)),
      context_{&directory_, &compressor_, std::move(collector_id), ReadClocks()},
      reply_(std::move(reply)) {
  WriteInfo();
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
    wake_.wait(lock, [this] { return !jobs_.empty() || finished_; });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

SessionStore* TraceStore::Find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void TraceStore::Open(SessionId session, const v1::Hello& hello, uint32_t pid) {
  Post([this, session, hello, pid] {
    sessions_.emplace(session, std::make_unique<SessionStore>(&context_, hello, pid));
  });
}

void TraceStore::Store(SessionId session, uint64_t connection, uint64_t frames, FrameBlock block) {
  const uint64_t bytes = block.bytes.capacity();
  queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // std::function wants to copy its function; the block must not be.
  auto shared = std::make_shared<FrameBlock>(std::move(block));
  Post([this, session, connection, frames, bytes, shared] {
    if (SessionStore* const store = Find(session); store != nullptr && shared->summary.frames > 0) {
      store->Store(*shared);
      if (store->TakeInfoChanged()) WriteInfo();
    }
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    reply_(StoredReply{session, connection, frames, std::move(*shared)});
  });
}

void TraceStore::AskPositions(SessionId session, uint64_t connection) {
  Post([this, session, connection] {
    PositionsReply reply{session, connection, {}};
    if (const SessionStore* const store = Find(session)) {
      for (const auto& [id, writer] : store->state().writers()) {
        reply.next_events.emplace_back(id, writer.next_event);
      }
    }
    reply_(std::move(reply));
  });
}

void TraceStore::Close(SessionId session, std::shared_ptr<const Segment> segment,
                       bool process_is_dead, v1::Ending ending) {
  Post([this, session, segment = std::move(segment), process_is_dead, ending]() mutable {
    if (SessionStore* const store = Find(session)) {
      const bool all_said = store->state().said_goodbye() && store->AccountsAgree();
      if (segment && !all_said && store->Recover(*segment, process_is_dead)) {
        ending.set_how(v1::Ending::HOW_GOODBYE);
      }
      store->Close(ending);
      if (store->TakeInfoChanged()) WriteInfo();
    }
    reply_(ClosedReply{session});
  });
}

void TraceStore::Forget(SessionId session) {
  Post([this, session] {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    for (const TraceInfo& info : found->second->infos()) forgotten_.push_back(info);
    sessions_.erase(found);
  });
}

void TraceStore::WriteInfo() {
  info_.traces = forgotten_;
  for (const auto& [id, session] : sessions_) {
    for (const TraceInfo& info : session->infos()) info_.traces.push_back(info);
  }
  const std::optional<Failure> failure = directory_.WriteInfo(info_);
  if (failure && problem_.empty()) problem_ = failure->message;
}

RunInfo TraceStore::Finish(const std::function<void(RunInfo*)>& finish) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_one();
  thread_.join();
  finish(&info_);
  WriteInfo();
  return info_;
}

}  // namespace ranktap::collector
