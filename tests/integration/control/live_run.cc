#include "tests/integration/control/live_run.h"
#include "collector/trace/load/run_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

namespace ranktap::control_test {
namespace {

namespace fs = std::filesystem;
using agent_test::BuildPath;
using agent_test::Host;

std::string MakeFolder() {
  std::string pattern = testing::TempDir() + "/live.XXXXXX";
  return mkdtemp(pattern.data());
}

}  // namespace

std::unique_ptr<SimulatedRun> Ranktap(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), BuildPath("bin/ranktap"));
  return std::make_unique<SimulatedRun>(arguments, Environment{});
}

bool WaitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 1200; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

LiveRun::LiveRun(int ranks, int rate, const std::vector<std::string>& options,
                 const Environment& environment)
    : LiveRun(ranks, Host("launches") + " @$STOP " + std::to_string(rate), options, environment) {}

LiveRun::LiveRun(int ranks, const std::string& rank_command,
                 const std::vector<std::string>& options, const Environment& environment)
    : folder_(MakeFolder()), path_(folder_ + "/run") {
  std::vector<std::string> command = {BuildPath("bin/ranktap"), "run", "--quiet", "-o", path_};
  command.insert(command.end(), options.begin(), options.end());
  // A rank that is killed must not end the others.
  const std::string job = "STOP=" + folder_ + "/stop; for rank in $(seq 0 " +
                          std::to_string(ranks - 1) + "); do (RANK=$rank; export RANK; exec " +
                          rank_command + ") & done; wait";
  command.insert(command.end(), {"--", "/bin/sh", "-c", job});
  thread_ = std::thread([this, command, environment] {
    process_ = std::make_unique<SimulatedRun>(command, environment);
  });
}

LiveRun::~LiveRun() {
  End();
  fs::remove_all(folder_);
}

std::map<int, Json> LiveRun::Status() const {
  std::map<int, Json> rows;
  const auto status = Ranktap({"status", path_, "--format", "json"});
  const Json parsed = Json::parse(status->output(), nullptr, false);
  if (!parsed.is_object()) return rows;
  for (const Json& row : parsed["rows"]) {
    if (row["rank"].is_number()) rows[row["rank"].get<int>()] = row;
  }
  return rows;
}

bool LiveRun::AwaitRanks(size_t count) const {
  return WaitUntil([&] { return Status().size() == count; });
}

bool LiveRun::AwaitLevel(const std::string& level) const {
  return WaitUntil([&] {
    const auto rows = Status();
    return !rows.empty() && std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return row.second["level"] == level;
    });
  });
}

void LiveRun::End() {
  if (!thread_.joinable()) return;
  std::ofstream(folder_ + "/stop") << "now";
  thread_.join();
  collector::Result<collector::Run> loaded = collector::LoadRun(path_);
  if (loaded) run_ = std::move(*loaded);
}

const collector::Trace* LiveRun::TraceOf(uint32_t rank) const {
  for (const collector::Trace& trace : run_.traces) {
    if (trace.info.rank == rank) return &trace;
  }
  return nullptr;
}

}  // namespace ranktap::control_test
