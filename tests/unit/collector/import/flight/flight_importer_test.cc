#include <gtest/gtest.h>

#include <fstream>

#include "collector/import/open_run.h"
#include "collector/trace/group_calls.h"
#include "tests/unit/collector/import/memory/pickle_text.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using pickled::Dict;
using pickled::Int;
using pickled::List;
using pickled::Text;

struct Planted {
  std::string name = "nccl:all_reduce", state = "scheduled";
  int64_t number = 1, p2p = 0;
  bool is_p2p = false, is_retired = false;
};

std::string Entry(const Planted& planted) {
  const std::string frame =
      Dict({{"filename", Text("/job/train.py")}, {"line", Int(31)}, {"name", Text("step")}});
  const std::string sizes = List({List({Int(4), Int(8)})});
  return Dict({{"process_group", List({Text("0"), Text("default_pg")})},
               {"profiling_name", Text(planted.name)},
               {"collective_seq_id", Int(planted.number)},
               {"p2p_seq_id", Int(planted.p2p)},
               {"is_p2p", planted.is_p2p ? "\x88" : "\x89"},
               {"input_sizes", sizes},
               {"output_sizes", sizes},
               {"input_dtypes", List({Text("Float")})},
               {"output_dtypes", List({Text("Float")})},
               {"time_created_ns", Int(1'795'667'796'602'648'329)},
               {"state", Text(planted.state)},
               {"retired", planted.is_retired ? "\x88" : "\x89"},
               {"frames", List({frame})}});
}

std::string Dump(const std::vector<Planted>& calls) {
  std::vector<std::string> entries;
  for (const Planted& planted : calls) entries.push_back(Entry(planted));
  const std::string group =
      Dict({{"name", Text("0")}, {"desc", Text("default_pg")}, {"ranks", Text("[0, 1, 2]")}});
  return pickled::File(Dict({{"version", Text("2.10")},
                             {"pg_config", Dict({{"0", group}})},
                             {"entries", List(entries)}}));
}

class FlightFiles : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  Trace Load(const std::string& bytes) {
    Result<std::vector<Trace>> traces = LoadFile(Write("nccl_trace_rank_7", bytes));
    EXPECT_TRUE(traces.ok()) << traces.message();
    return traces.ok() ? std::move((*traces)[0]) : Trace();
  }
  std::string Refused(const std::string& bytes) {
    const Result<std::vector<Trace>> traces = LoadFile(Write("nccl_trace_rank_7", bytes));
    return traces.ok() ? "read" : traces.message();
  }

  TemporaryDirectory folder_;
};

TEST_F(FlightFiles, APickleGivesGroupsCallsAndLines) {
  const Trace trace = Load(Dump({{}}));
  EXPECT_EQ(trace.info.rank, 7u);
  EXPECT_EQ(trace.info.world_size, 3u);
  ASSERT_EQ(trace.process_groups.size(), 1u);
  EXPECT_EQ(trace.process_groups[0].ranks, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(trace.process_groups[0].backend, "nccl");
  ASSERT_EQ(GroupCallsOf(trace).list.size(), 1u);
  const GroupCall& call = GroupCallsOf(trace).list[0];
  EXPECT_EQ(trace.dictionary.String(call.function), "all_reduce");
  EXPECT_EQ(trace.dictionary.String(call.in_sizes), "[[4, 8]]");
  EXPECT_EQ(trace.dictionary.String(call.in_types), "Float");
  EXPECT_EQ(trace.dictionary.String(call.stack), "/job/train.py(31): step");
  EXPECT_EQ(call.entered_ns, 1'795'667'796'602'648'329);
  EXPECT_TRUE(call.is_open);
}

TEST_F(FlightFiles, JsonGivesTheSameCallsWithoutLines) {
  const Trace trace = Load(
      R"({"comm_lib_version": "", "entries": [{"collective_seq_id": 5, "input_dtypes": ["Float"], )"
      R"("input_sizes": [[4,8]], "is_p2p": false, "output_dtypes": ["Float"], "output_sizes": [[4,8]], )"
      R"("p2p_seq_id": 0, "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce", )"
      R"("retired": true, "state": "scheduled", "time_created_ns": 12}], )"
      R"("pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}})");
  ASSERT_EQ(GroupCallsOf(trace).list.size(), 1u);
  EXPECT_EQ(GroupCallsOf(trace).list[0].number, 5u);
  EXPECT_EQ(trace.dictionary.String(GroupCallsOf(trace).list[0].in_sizes), "[[4, 8]]");
  EXPECT_FALSE(GroupCallsOf(trace).list[0].is_open);  // gloo only ever retires
  EXPECT_EQ(trace.info.world_size, 2u);
}

TEST_F(FlightFiles, WhatNcclRetiredWithoutCompletingItIsOpen) {
  const Trace trace =
      Load(Dump({{.state = "completed"}, {.state = "started", .number = 2, .is_retired = true}}));
  EXPECT_FALSE(GroupCallsOf(trace).list[0].is_open);
  EXPECT_TRUE(GroupCallsOf(trace).list[1].is_open);
}

TEST_F(FlightFiles, MessagesKnowTheirPeerAndABatchEndsWithItsLastEntry) {
  const Trace trace = Load(Dump(
      {{.name = "nccl:send 7->1", .number = 0, .p2p = 1, .is_p2p = true},
       {.name = "nccl:recv 7<-2", .number = 0, .p2p = 1, .is_p2p = true},
       {.name = "nccl:coalesced", .state = "completed", .number = 0, .p2p = 1, .is_p2p = true}}));
  ASSERT_EQ(GroupCallsOf(trace).list.size(), 2u);
  EXPECT_TRUE(GroupCallsOf(trace).list[0].is_send);
  EXPECT_EQ(GroupCallsOf(trace).list[0].peer, 1u + 1);
  EXPECT_TRUE(GroupCallsOf(trace).list[1].is_recv);
  EXPECT_EQ(GroupCallsOf(trace).list[1].peer, 1u + 2);
  EXPECT_FALSE(GroupCallsOf(trace).list[0].is_open);
  EXPECT_FALSE(GroupCallsOf(trace).list[1].is_open);
}

TEST_F(FlightFiles, ATruncatedPickleGivesWhatIsThereAndTheOffset) {
  const std::string whole = Dump({{}, {.number = 2}, {.number = 3}});
  const Trace trace = Load(whole.substr(0, whole.size() - 40));
  EXPECT_GE(GroupCallsOf(trace).list.size(), 2u);
  ASSERT_FALSE(trace.damage.empty());
  EXPECT_GT(trace.damage[0].offset, whole.size() / 2);
}

TEST_F(FlightFiles, ATruncatedJsonGivesWhatIsThereAndTheOffset) {
  const std::string entry =
      R"({"collective_seq_id":1,"process_group":["0","g"],"profiling_name":"gloo:barrier"})";
  const Trace trace = Load(R"({"entries":[)" + entry + "," + entry.substr(0, 30));
  EXPECT_EQ(GroupCallsOf(trace).list.size(), 1u);
  ASSERT_FALSE(trace.damage.empty());
  EXPECT_EQ(trace.damage[0].offset, 12 + entry.size() + 1);
}

TEST_F(FlightFiles, APickleThatAsksToRunCodeIsRefusedByFileAndOffset) {
  const std::string head = "\x80\x04}(" + Text("version");
  const std::string message = Refused(head + "cos\nsystem\n(" + Text("touch /tmp/owned") + "tR.");
  EXPECT_NE(message.find("nccl_trace_rank_7: not a dump"), message.npos) << message;
  EXPECT_NE(message.find("offset " + std::to_string(head.size()) + ": the pickle asks for GLOBAL"),
            message.npos)
      << message;
}

TEST_F(FlightFiles, GarbageIsRefusedWithTheNameOfTheFile) {
  for (const std::string& bytes :
       {std::string("\x80\x04version garbage"), std::string("{\"entries\": 7}"),
        std::string("{\"pg_config\""), std::string("{\"entries\":[[[[[[")}) {
    EXPECT_NE(Refused(bytes).find("nccl_trace_rank_7: not a dump of PyTorch's Flight Recorder"),
              std::string::npos)
        << Refused(bytes);
  }
}

TEST_F(FlightFiles, ADirectoryOfThemIsARunByTheNumbersAtTheEndOfTheirNames) {
  for (const int rank : {11, 3}) Write("fr_" + std::to_string(rank), Dump({{}}));
  const auto run = OpenRun({folder_.path()});
  ASSERT_TRUE(run.ok()) << run.message();
  ASSERT_EQ(run->traces.size(), 2u);
  EXPECT_EQ(run->traces[0].info.rank, 3u);
  EXPECT_EQ(run->traces[1].info.rank, 11u);
}

}  // namespace
}  // namespace ranktap::collector
