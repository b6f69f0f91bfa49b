#include "tests/integration/agent/traced_run.h"
#include "collector/trace/load/run_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>

namespace ranktap::agent_test {
namespace {

namespace fs = std::filesystem;

std::string MakeFolder() {
  std::string pattern = testing::TempDir() + "/traced.XXXXXX";
  return mkdtemp(pattern.data());
}

}  // namespace

TracedRun::TracedRun(const std::vector<std::string>& command, const Environment& environment,
                     const std::vector<std::string>& options)
    : folder_(MakeFolder()), path_(folder_ + "/run") {
  std::vector<std::string> traced = {BuildPath("bin/ranktap"), "run", "--quiet", "-o", path_};
  traced.insert(traced.end(), options.begin(), options.end());
  traced.push_back("--");
  traced.insert(traced.end(), command.begin(), command.end());
  process_ = std::make_unique<SimulatedRun>(traced, environment);
  collector::Result<collector::Run> loaded = collector::LoadRun(path_);
  if (loaded) {
    run_ = std::move(*loaded);
  } else {
    load_problem_ = loaded.message();
  }
}

TracedRun::~TracedRun() { fs::remove_all(folder_); }

const collector::Trace* TracedRun::TraceOf(int pid) const {
  for (const collector::Trace& trace : run_.traces) {
    if (trace.info.pid == static_cast<uint32_t>(pid)) return &trace;
  }
  return nullptr;
}

std::string TracedRun::Problems() const {
  const collector::Result<collector::RunCheck> check = collector::CheckRun(path_);
  if (!check) return check.message() + "\n";
  std::string text;
  for (const std::string& problem : check->problems) text += problem + "\n";
  for (const collector::TraceCheck& trace : check->traces) {
    for (const collector::Damage& damage : trace.problems) {
      text += trace.path + ": " + damage.what + "\n";
    }
  }
  return text;
}

std::string Host(const std::string& name) { return BuildPath("workloads/" + name); }

int ExitStatus(const SimulatedRun& run) {
  return WIFSIGNALED(run.status()) ? 128 + WTERMSIG(run.status()) : WEXITSTATUS(run.status());
}

void ExpectSameToTheUser(const SimulatedRun& bare, const SimulatedRun& traced) {
  EXPECT_EQ(ExitStatus(traced), ExitStatus(bare));
  EXPECT_EQ(traced.output(), bare.output());
  EXPECT_EQ(traced.errors(), bare.errors());
}

Sums SumWriters(const collector::Trace& trace) {
  Sums sums;
  for (const collector::Writer& writer : trace.writers) {
    sums.produced += writer.account.produced();
    sums.stored += writer.events;
    sums.lost += proto::Total(writer.lost) + proto::Total(writer.declared);
  }
  return sums;
}

}  // namespace ranktap::agent_test
