// A `ranktap collect` in a process of its own: what it takes of memory and descriptors can be asked
// from outside, and limits hold for it alone.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "collector/ingest/collector.h"
#include "collector/ingest/net/public_socket.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {

class CollectorProcess {
 public:
  struct Setup {
    bool all_users = false;
    IngestLimits limits{};
    KeepLimits keep{};
    std::function<void()> first = [] {};  // in the new process, before there is a collector
  };
  // Files and socket lie below `directory`, which other users may pass.
  CollectorProcess(const std::string& directory, const Setup& setup) : directory_(directory) {
    EXPECT_EQ(::chmod(directory.c_str(), 0711), 0);
    int ready[2], stop[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(stop), 0);
    pid_ = StartChild([&] {
      ::close(stop[1]);
      return Serve(setup, ready[1], stop[0]);
    });
    ::close(ready[1]);
    ::close(stop[0]);
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "no collector";
    ::close(ready[0]);
    stop_ = stop[1];
  }
  ~CollectorProcess() {
    if (pid_ > 0) (void)Stop();
  }

  std::string socket() const { return directory_ + "/sockets/collector.sock"; }
  std::string root() const { return directory_ + "/runs"; }
  pid_t pid() const { return pid_; }
  // Ends it as a signal would; its wait status.
  int Stop() {
    ::close(stop_);
    const int status = WaitFor(pid_);
    pid_ = 0;
    return status;
  }
  // "VmRSS", "VmHWM": in bytes.
  uint64_t Memory(const std::string& name) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) << 10;
    }
    return 0;
  }
  size_t Descriptors() const { return Count("fd"); }
  size_t Threads() const { return Count("task"); }

 private:
  size_t Count(const std::string& what) const {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid_) + "/" + what);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  int Serve(const Setup& setup, int ready, int stop) {
    setup.first();
    Result<PublicSocket> listener = PublicSocket::Create(socket(), setup.all_users);
    if (!listener) return 3;
    Result<RunRegistry> registry = RunRegistry::Open(root(), {});
    if (!registry) return 4;
    ServerOptions options;
    options.collector_id = RandomId();
    options.collector_version = "test";
    options.owner = ::geteuid();
    options.resumable = true;
    options.all_users = setup.all_users;
    options.limits = setup.limits;
    options.keep = setup.keep;
    options.limits.small_block_ages = 1;
    Collector collector(listener->TakeListener(), std::move(*registry), options);
    char byte = 'r';
    (void)!::write(ready, &byte, 1);
    (void)!::read(stop, &byte, 1);
    (void)collector.Finish(0, [](RunInfo*) {});
    return 0;
  }

  std::string directory_;
  pid_t pid_ = 0;
  int stop_ = -1;
};

}  // namespace ranktap::collector
