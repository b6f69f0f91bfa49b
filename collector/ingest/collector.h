// A collector: the server's thread and the writer's thread over one run directory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "collector/ingest/device_sampler.h"
#include "collector/ingest/server.h"
#include "collector/ingest/store/trace_store.h"

namespace ranktap::collector {

class Collector {
 public:
  // Serves `listener` until Finish. Throws nothing; the threads run when this returns.
  Collector(FileDescriptor listener, RunDirectory directory, RunInfo info,
            const ServerOptions& options);
  ~Collector();

  // Many runs, of many users if the options say so.
  Collector(FileDescriptor listener, RunRegistry registry, const ServerOptions& options);

  // Asks both threads for a sign of life; beats() counts the answers.
  void Ping();
  uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

  void SetLevel(v1::LevelChange change) { server_.SetLevel(std::move(change)); }
  // What `ranktap start` and `ranktap stop` without options do to every process here.
  void BeginWindow() { server_.Control(v1::ControlRequest::VERB_START); }
  void EndWindow() { server_.Control(v1::ControlRequest::VERB_STOP); }
  // Saves what --keep has of the request's job. See Server::Dump.
  void Dump(v1::ControlRequest request, std::function<void(v1::ControlReply)> done) {
    server_.Dump(std::move(request), std::move(done));
  }
  // Something that was not done, as `status` and run.json tell it: how often.
  void CountRefusal(const std::string& kind, const std::string& detail) {
    server_.CountRefusal(kind, detail);
  }
  void AskFlight(std::vector<pid_t> processes, FlightRequests::Done done) {
    server_.AskFlight(std::move(processes), std::move(done));
  }
  void SetWaits(std::vector<std::pair<uid_t, std::string>> waits) {
    server_.SetWaits(std::move(waits));
  }
  // For a SpoolAdopter, which ends before Finish.
  FileDescriptor ConnectSpool(uid_t owner) { return server_.ConnectSpool(owner); }
  // Waits for the processes that are still at it, at most `grace_ns`, stores what they sent, closes
  // every file and returns what run.json says. `finish` adds what is known only now.
  RunInfo Finish(uint64_t grace_ns, const std::function<void(RunInfo*)>& finish);
  const std::string& problem() const { return store_.problem(); }

 private:
  std::atomic<uint64_t> beats_ = 0;
  Server server_;
  TraceStore store_;
  std::thread thread_;
  std::unique_ptr<DeviceSampler> devices_;  // none unless asked for
};

// 16 bytes that no other collector has.
std::string RandomId();

}  // namespace ranktap::collector
