// A collector over a directory that is removed at the end, and child processes to be its agents.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "collector/ingest/collector.h"
#include "collector/ingest/net/private_socket.h"
#include "collector/trace/load/run_reader.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {

class TestCollector {
 public:
  explicit TestCollector(ServerOptions options = {})
      : socket_(std::move(*PrivateSocket::Create())) {
    options.collector_id = RandomId();
    options.collector_version = "test";
    options.limits.small_block_ages = 1;  // many of these tests wait for acknowledgements
    options.owner = ::geteuid();
    RunInfo info;
    info.run = "test";
    info.command = {"test"};
    collector_ = std::make_unique<Collector>(
        socket_.TakeListener(), std::move(*RunDirectory::Create(directory_ / "run", "x")), info,
        options);
  }

  const std::string& socket() const { return socket_.path(); }
  std::string run_path() const { return directory_ / "run"; }
  Collector& collector() { return *collector_; }
  // Stops and returns what run.json says. Waits for processes that are still alive.
  RunInfo Finish(uint64_t grace_ms = 10'000) {
    return collector_->Finish(grace_ms * 1'000'000, [](RunInfo*) {});
  }
  Run Load() {
    Result<Run> run = LoadRun(run_path());
    EXPECT_TRUE(run.ok()) << run.message();
    return run.ok() ? std::move(*run) : Run{};
  }

 private:
  TemporaryDirectory directory_;
  PrivateSocket socket_;
  std::unique_ptr<Collector> collector_;
};

// Runs `body` in a child process, which ends with _exit(body()). Returns the wait status.
inline pid_t StartChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  int status = 99;
  try {
    status = body();
  } catch (const std::exception& error) {
    (void)!::write(2, error.what(), std::string(error.what()).size());
  }
  ::_exit(status);
}
inline int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}
inline int RunChild(const std::function<int()>& body) { return WaitFor(StartChild(body)); }

}  // namespace ranktap::collector
