// The Flight Recorder's dumps in a hang's directory, as agents have sent them.
#include "collector/cli/hang_evidence.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "collector/file/hang_notes.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

class HangEvidenceTest : public testing::Test {
 protected:
  HangEvidenceTest()
      : parent_(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)),
        hang_(std::move(*HangDirectory::Create(parent_.get(), folder_.path(), 0))) {
    hang_.WriteVerdict({.sentence = "Rank 1 did not enter AllReduce."}, {}, 0);
  }

  std::set<std::string> Add(const std::vector<FlightRecord>& flights) {
    AddFlights(flights, {{10, 0}, {11, 1}}, &hang_);
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(hang_.path())) {
      names.insert(file.path().filename());
    }
    names.erase("hang.json");
    return names;
  }
  std::optional<HangCalls> Calls() const { return ReadHangNotes(folder_.path()).at(0).calls; }

  TemporaryDirectory folder_;
  FileDescriptor parent_;
  HangDirectory hang_;
};

// A rank that entered so many calls; the last one is open, or all have ended.
std::string Dump(const std::string& backend, int calls, bool is_open) {
  std::string entries;
  for (int i = 1; i <= calls; ++i) {
    const bool ended = i < calls || !is_open;
    entries += fmt::format(
        R"({}{{"collective_seq_id":{},"input_dtypes":["Float"],"input_sizes":[[1024]],"is_p2p":false,)"
        R"("op_id":{},"output_dtypes":["Float"],"output_sizes":[[1024]],"p2p_seq_id":0,"pg_id":0,)"
        R"("process_group":["0","default_pg"],"profiling_name":"{}:all_reduce","record_id":{},)"
        R"("retired":{},"state":"{}","time_created_ns":{}}})",
        i == 1 ? "" : ",", i, i, backend, i - 1, ended, ended ? "completed" : "scheduled",
        1'700'000'000'000'000'000 + i);
  }
  return fmt::format(
      R"({{"comm_lib_version":"","entries":[{}],"pg_config":{{"0":{{"desc":"default_pg","name":"0",)"
      R"("ranks":"[0, 1]"}}}},"version":"2.10"}})",
      entries);
}

TEST_F(HangEvidenceTest, NcclsCallsHaveThePlainNameAndTellWhoseIsMissing) {
  const auto names = Add({{.pid = 10, .dumps = {{"nccl", Dump("nccl", 3, true)}}},
                          {.pid = 11,
                           .dumps = {{"nccl", Dump("nccl", 2, false)}, {"gloo", "[garbage"}},
                           .problem = "its dump\x1b has more"}});
  EXPECT_EQ(names, (std::set<std::string>{"flight-rank-00000.json", "flight-rank-00001.json",
                                          "flight-gloo-rank-00001.json", "flight-problems.txt"}));
  ASSERT_TRUE(Calls().has_value());
  EXPECT_EQ(Calls()->cause, "not entered");
  EXPECT_TRUE(Calls()->finding.starts_with(
      "Rank 1 did not enter AllReduce #3 (4.0 KiB, group default_pg); rank 0 waits since "))
      << Calls()->finding;
}

TEST_F(HangEvidenceTest, WhereNcclsCallsHaveAllEndedGloosAreAskedToo) {
  const auto names = Add(
      {{.pid = 10, .dumps = {{"gloo", Dump("gloo", 4, true)}, {"nccl", Dump("nccl", 2, false)}}},
       {.pid = 11, .dumps = {{"gloo", Dump("gloo", 3, false)}}}});
  EXPECT_EQ(names, (std::set<std::string>{"flight-rank-00000.json", "flight-gloo-rank-00000.json",
                                          "flight-gloo-rank-00001.json"}));
  ASSERT_TRUE(Calls().has_value());
  EXPECT_TRUE(Calls()->finding.starts_with("Rank 1 did not enter AllReduce #4 ("));
}

TEST_F(HangEvidenceTest, GarbageIsKeptAsItCameAndAStrangeBackendOrProcessIsNot) {
  const auto names = Add({{.pid = 10, .dumps = {{"gloo", "\x80\x02 garbage"}}},
                          {.pid = 11, .dumps = {{"../../etc/passwd", "x"}, {"", "y"}}},
                          {.pid = 99, .dumps = {{"gloo", Dump("gloo", 1, true)}}, .problem = "z"}});
  EXPECT_EQ(names, (std::set<std::string>{"flight-rank-00000.json"}));
  EXPECT_FALSE(Calls().has_value());
}

}  // namespace
}  // namespace ranktap::collector
