// Execution traces of PyTorch and Chakra, in every form that they come in, alone and beside
// torch.profiler's file of the same process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "collector/import/importer.h"
#include "collector/import/importers.h"
#include "collector/report/run_filter.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kData = RANKTAP_TEST_DATA "/et/";

collector::Run Opened(const std::vector<std::string>& paths) {
  Result<collector::Run> run = OpenRun(paths);
  EXPECT_TRUE(run) << run.message();
  return run ? std::move(*run) : collector::Run{};
}

std::string BytesOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

uint32_t RowNamed(const Trace& trace, std::string_view name) {
  for (uint32_t row = 0; row < trace.operators.size(); ++row) {
    if (trace.dictionary.String(trace.operators.name[row]) == name) return row;
  }
  ADD_FAILURE() << "no operator " << name;
  return 0;
}

std::string Node(int id, int parent, const std::string& name, int rf_id,
                 const std::string& inputs = R"("values":[],"shapes":[],"types":[])",
                 const std::string& outputs = R"("values":[],"shapes":[],"types":[])") {
  return R"({"id":)" + std::to_string(id) + R"(,"name":")" + name + R"(","ctrl_deps":)" +
         std::to_string(parent) + R"(,"inputs":{)" + inputs + R"(},"outputs":{)" + outputs +
         R"(},"attrs":[{"name":"rf_id","type":"uint64","value":)" + std::to_string(rf_id) +
         R"(},{"name":"seq_id","type":"int64","value":-1},{"name":"scope","type":"uint64","value":0},)"
         R"({"name":"tid","type":"uint64","value":1}]})";
}
std::string Observed(const std::string& schema, const std::string& nodes) {
  return R"({"schema": ")" + schema + R"(", "pid": 10, "nodes": [)" + nodes +
         R"(], "finish_ts": 2})";
}

const std::string kOneTensor =
    R"x("values":[[7,8,0,4,4,"cpu"],1],"shapes":[[4],[]],"types":["Tensor(float)","Int"])x";

TEST(ExecutionImport, FilesAreToldByTheirContent) {
  TemporaryDirectory directory;
  const std::map<std::string, std::string> files = {
      {kData + "astra2/rank.0.et", "Chakra"},
      {kData + "stock.0.et", "Chakra"},
      {kData + "linked.0.json.gz", "torch execution trace"},
      {kData + "gloo/host.0.json.gz", "torch execution trace"},
      {kData + "gloo/device.0.json.gz", "torch.profiler"},
  };
  for (const auto& [path, name] : files) {
    std::filesystem::copy_file(path, directory / "anything",
                               std::filesystem::copy_options::overwrite_existing);
    const Importer* const importer = ImporterOf(directory / "anything");
    ASSERT_NE(importer, nullptr) << path;
    EXPECT_EQ(importer->name, name) << path;
  }
  EXPECT_FALSE(LooksLikeChakra("{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7874"));
  EXPECT_FALSE(LooksLikeExecutionTrace("{\"schemaVersion\": 1, \"traceEvents\": ["));
}

TEST(ExecutionImport, ObserversOperatorsStandInTheirOrderAndInTheirParents) {
  // Children are written before their parents.
  const collector::Run run = OpenText(Observed(
      "1.0.3-chakra.0.0.4", Node(6, 5, "aten::mm", 2, kOneTensor) + "," +
                                Node(5, 2, "aten::linear", 1) + "," +
                                Node(9, 2, "aten::add_", 3, kOneTensor) + "," +
                                Node(2, 1, "[pytorch|profiler|execution_trace|thread]", 0)));
  const Trace& trace = run.traces.at(0);
  EXPECT_EQ(trace.origin, TraceOrigin::kExecution);
  ASSERT_EQ(trace.operators.size(), 3u);
  const uint32_t linear = RowNamed(trace, "aten::linear"), mm = RowNamed(trace, "aten::mm");
  EXPECT_EQ(trace.operators.parent[mm], linear);
  EXPECT_LT(trace.operators.end[linear], trace.operators.end[RowNamed(trace, "aten::add_")]);
  EXPECT_EQ(trace.dictionary.String(trace.operators.shapes.At(mm)), "[[4], []]");
  EXPECT_EQ(trace.dictionary.String(trace.operators.types.At(mm)), R"(["float", "Scalar"])");
  EXPECT_EQ(trace.dictionary.String(trace.operators.values.At(mm)), R"(["", "1"])");
  ASSERT_EQ(trace.tensor_uses.size(), 2u);
  EXPECT_EQ(trace.tensor_uses[0].memory, 8u);
  EXPECT_THAT(trace.info.notes, ElementsAre(HasSubstr("no times")));
}

TEST(ExecutionImport, OldestSchemaHasItsFieldsBesideTheName) {
  const collector::Run run = OpenText(
      R"({"schema":"1.0.1","pid":10,"nodes":[{"name":"aten::relu","id":3,"rf_id":5,"parent":2,)"
      R"("seq_id":4,"scope":0,"tid":1,"fw_tid":0,"op_schema":"","inputs":[[7,8,0,4,4,"cpu"]],)"
      R"x("input_shapes":[[4]],"input_types":["Tensor(float)"],"outputs":[],"output_shapes":[],)x"
      R"("output_types":[]}]})");
  const Trace& trace = run.traces.at(0);
  EXPECT_EQ(trace.operators.record_function.At(0), 5u);
  EXPECT_EQ(trace.operators.sequence.At(0), 5u);
  EXPECT_EQ(trace.dictionary.String(trace.operators.types.At(0)), R"(["float"])");
}

TEST(ExecutionImport, ObserversAndProfilersFilesOfEachRankAreOneTrace) {
  const collector::Run run = Opened({kData + "pair"});
  EXPECT_THAT(run.problems, IsEmpty());
  ASSERT_EQ(run.traces.size(), 2u);
  for (const Trace& trace : run.traces) {
    EXPECT_EQ(trace.origin, TraceOrigin::kKineto);
    EXPECT_EQ(trace.kernels.size(), 8u);
    EXPECT_EQ(trace.memsets.size(), 2u);
    const uint32_t addmm = RowNamed(trace, "aten::addmm");
    EXPECT_EQ(trace.dictionary.String(trace.operators.shapes.At(addmm)), "[[65536], [262144]]");
    EXPECT_EQ(trace.operators.scope.At(RowNamed(trace, "aten::mm")), 1);
    EXPECT_GT(trace.tensor_uses.size(), 10u);
    EXPECT_THAT(trace.info.notes, ElementsAre(HasSubstr("20 of the 20 operators")));
  }
}

TEST(ExecutionImport, FilesOfAProgramWithoutGpuJoinToo) {
  const collector::Run run = Opened({kData + "gloo"});
  EXPECT_THAT(run.problems, IsEmpty());
  ASSERT_EQ(run.traces.size(), 2u);
  const Trace& trace = run.traces[0];
  EXPECT_THAT(trace.info.notes, testing::Contains(HasSubstr("369 of the 369 operators")));
  EXPECT_EQ(trace.dictionary.String(trace.operators.values.At(RowNamed(trace, "c10d::send"))),
            R"(["", "", "1", "1"])");
}

TEST(ExecutionImport, AnotherProcesssExecutionTraceIsNotJoined) {
  const collector::Run run =
      Opened({kData + "pair/host.1.json.gz", kData + "pair/device.0.json.gz"});
  EXPECT_EQ(run.traces.size(), 2u);
}

// Eight ranks in containers, where each process is number 10, with two files each. `with_ids`: the
// profiler wrote "Record function id".
collector::Run EightRanks(bool with_ids) {
  TemporaryDirectory directory;
  for (int rank = 0; rank < 8; ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    std::string nodes, events;
    for (int i = 1; i <= 10; ++i) {
      nodes += (i > 1 ? "," : "") + Node(i + 1, 1, "aten::relu", i, kOneTensor);
      const std::string id = R"("Record function id":)" + std::to_string(i);
      events += (i > 1 ? "," : "") + Span("cpu_op", "aten::relu", 10 * i, 5, with_ids ? id : "");
    }
    Write(directory / ("et." + name + ".json"), Observed("1.1.1-chakra.0.0.4", nodes));
    Write(directory / ("kineto." + name + ".json"), File("", events));
  }
  Result<collector::Run> run = OpenRun({directory.path()});
  EXPECT_TRUE(run) << run.message();
  return run ? std::move(*run) : collector::Run{};
}

TEST(ExecutionImport, EightRanksWithTwoFilesEachAreEightWhetherTheyJoinOrNot) {
  for (const bool with_ids : {true, false}) {
    const collector::Run run = EightRanks(with_ids);
    ASSERT_EQ(run.traces.size(), 8u);
    for (uint32_t rank = 0; rank < 8; ++rank) {
      EXPECT_EQ(run.traces[rank].info.rank, rank);
      EXPECT_EQ(run.traces[rank].origin, TraceOrigin::kKineto);
      EXPECT_EQ(run.traces[rank].operators.shapes.empty(), !with_ids);
    }
    EXPECT_THAT(Judge(run).sentence, testing::StartsWith("Without a device all of"));
    EXPECT_EQ(run.problems.size(), with_ids ? 0u : 8u);
    if (with_ids) continue;
    EXPECT_EQ(run.problems[0],
              "et.rank0.json: an execution trace, not joined with kineto.rank0.json of the same "
              "rank and left out: the other file's operators have no ids (\"Record function id\")");
  }
}

TEST(ExecutionImport, ChakrasNodesAreWorkOfDevicesAndHosts) {
  const collector::Run run = Opened({kData + "astra2"});
  EXPECT_THAT(run.problems, IsEmpty());
  ASSERT_EQ(run.traces.size(), 2u);
  const Trace& trace = run.traces[1];
  EXPECT_EQ(trace.info.rank, 1u);
  EXPECT_EQ(trace.kernels.size(), 6u);
  EXPECT_EQ(trace.api_calls.size(), 2u);
  EXPECT_EQ(trace.operators.size(), 4u);
  EXPECT_EQ(trace.kernels.end[0] - trace.kernels.start[0], 120'345);
  ASSERT_EQ(trace.process_groups.size(), 1u);
  EXPECT_THAT(trace.process_groups[0].ranks, ElementsAre(0u, 1u));
  const Collective& received = trace.collectives.at(trace.kernels.collective.At(2) - 1);
  EXPECT_EQ(received.name, "recv");
  EXPECT_EQ(received.source_rank, 0);
  EXPECT_EQ(received.in_elements, 65536u * 4);
}

TEST(ExecutionImport, NodesWithoutAStartStandBehindEachOther) {
  const collector::Run run = Opened({kData + "stock.0.et"});
  const Trace& trace = run.traces.at(0);
  EXPECT_EQ(trace.kernels.size(), 8u);
  EXPECT_EQ(trace.copies.size(), 2u);
  EXPECT_THAT(trace.info.notes, ElementsAre(HasSubstr("have no start")));
}

TEST(ExecutionImport, LinkedFilesHaveTheirTimes) {
  const collector::Run run = Opened({kData + "linked.0.json.gz"});
  const Trace& trace = run.traces.at(0);
  ASSERT_EQ(trace.kernels.size(), 8u);
  EXPECT_EQ(trace.kernels.start[0], 2'000'000);
  EXPECT_EQ(trace.kernels.end[0], 2'120'000);
  EXPECT_EQ(trace.collectives.at(trace.kernels.collective.At(2) - 1).name, "allreduce");
}

TEST(ExecutionImport, TensorsStayWithTheirOperatorsWhenStepsAreTaken) {
  collector::Run run = Opened({kData + "pair"});
  ASSERT_TRUE(KeepSteps(*ParseNumberSet("1"), &run));
  const Trace& trace = run.traces.at(0);
  ASSERT_GT(trace.tensor_uses.size(), 5u);
  for (const TensorUse& use : trace.tensor_uses) {
    ASSERT_LT(use.op, trace.operators.size());
    EXPECT_EQ(use.time,
              use.is_output ? trace.operators.end[use.op] : trace.operators.start[use.op]);
  }
}

// As the article's script makes it: ranks in front of pids and tids, no metadata, one list.
TEST(ExecutionImport, AScriptsJoinedFileIsATraceForEachRankAgain) {
  for (const std::string prefix : {"rank", "", "Rank_"}) {
    std::string events;
    for (int rank : {0, 1, 2}) {
      const auto id = [&](const std::string& text) {
        return "\"" + prefix + std::to_string(rank) + "_" + text + "\"";
      };
      for (int call : {1, 2}) {
        events +=
            (events.empty() ? "" : ",") +
            std::string(R"({"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":)") +
            id("40") + R"(,"tid":)" + id("41") + R"(,"ts":)" + std::to_string(100 * call) +
            R"(,"dur":5,"args":{}},{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":)" + id("40") +
            R"(,"tid":)" + id("40") + R"(,"ts":)" + std::to_string(100 * call) +
            R"(,"dur":7,"args":{"External id":)" + std::to_string(call) + "}}";
      }
    }
    const collector::Run run = OpenText(R"({"traceEvents":[)" + events + "]}");
    ASSERT_EQ(run.traces.size(), 3u) << prefix;
    for (uint32_t rank : {0u, 1u, 2u}) {
      EXPECT_EQ(run.traces[rank].info.rank, rank);
      EXPECT_EQ(run.traces[rank].info.pid, 40u);
      EXPECT_EQ(run.traces[rank].operators.size(), 4u);
    }
  }
}

TEST(ExecutionImport, DamageIsToldWithItsOffsetAndTheRestIsRead) {
  const std::string whole = BytesOf(kData + "astra2/rank.0.et");
  const collector::Run half = OpenText(whole.substr(0, 700));
  ASSERT_EQ(half.traces.at(0).damage.size(), 1u);
  EXPECT_EQ(half.traces[0].damage[0].offset, 684u);
  EXPECT_THAT(half.traces[0].damage[0].what, HasSubstr("ends after 15"));
  EXPECT_EQ(half.traces[0].kernels.size(), 3u);
  EXPECT_THAT(WhyNotOpened(whole.substr(0, 20)),
              HasSubstr("x.json: no execution trace of Chakra (at byte 0"));

  const std::string text = Observed("1.1.1-chakra.0.0.4", Node(3, 2, "aten::relu", 1));
  const collector::Run cut = OpenText(text.substr(0, text.find("], \"finish")) + "," +
                                      Node(4, 2, "aten::t", 2).substr(0, 40));
  EXPECT_EQ(cut.traces.at(0).operators.size(), 1u);
  ASSERT_EQ(cut.traces[0].damage.size(), 1u);
  EXPECT_THAT(cut.traces[0].damage[0].what, HasSubstr("cut off"));
}

// As scripts leave them: numbers as texts, the parent as a list, the schema last or gone.
TEST(ExecutionImport, FilesThatWentThroughAScriptAreRead) {
  const auto as_text = [](std::string node) {
    node.replace(node.find("\"id\":4"), 6, "\"id\":\"4\"");
    return node.replace(node.find("\"ctrl_deps\":3"), 13, "\"ctrl_deps\":[\"3\"]");
  };
  const std::string nodes =
      Node(3, 2, "aten::linear", 1) + "," + as_text(Node(4, 3, "aten::addmm", 2, kOneTensor));
  for (const std::string& text :
       {Observed("1.1.0-chakra.0.0.4", nodes),
        R"({"pid": 10, "time": "x", "nodes": [)" + nodes + R"(], "schema": "1.0.4-chakra.0.0.4"})",
        R"({"finish_ts": 3, "nodes": [)" + nodes + R"(], "pid": 10})"}) {
    const collector::Run run = OpenText(text);
    const Trace& trace = run.traces.at(0);
    ASSERT_EQ(trace.operators.size(), 2u) << text;
    EXPECT_EQ(trace.operators.parent[RowNamed(trace, "aten::addmm")],
              RowNamed(trace, "aten::linear"));
    EXPECT_EQ(trace.info.pid, 10u);
    const bool has_schema = text.find("schema") != text.npos;
    EXPECT_EQ(trace.info.notes.size(), has_schema ? 1u : 2u);
    EXPECT_EQ(trace.info.notes.back().starts_with("it names no schema"), !has_schema);
  }
}

TEST(ExecutionImport, ChakrasFilesWithoutMetadataAreRead) {
  const std::string whole = BytesOf(kData + "astra2/rank.0.et");
  const size_t nodes = 1 + static_cast<size_t>(whole[0]);  // its size is one byte
  const size_t operators = Opened({kData + "astra2/rank.0.et"}).traces.at(0).operators.size();
  const collector::Run empty = OpenText(std::string(1, '\0') + whole.substr(nodes));
  EXPECT_EQ(empty.traces.at(0).operators.size(), operators);
  const collector::Run without = OpenText(whole.substr(nodes));
  EXPECT_EQ(without.traces.at(0).operators.size(), operators);
  EXPECT_THAT(without.traces[0].info.notes, ElementsAre(HasSubstr("GlobalMetadata")));
}

TEST(ExecutionImport, NoPrefixAndNoChangedByteOfAFileIsFatal) {
  TemporaryDirectory directory;
  const std::string whole = BytesOf(kData + "astra2/rank.0.et");
  for (size_t at = 0; at < whole.size(); at += at < 80 ? 1 : 7) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    Write(directory / "x.et", changed);
    (void)ImportChakra(directory / "x.et");
    Write(directory / "x.et", whole.substr(0, at));
    (void)ImportChakra(directory / "x.et");
  }
}

}  // namespace
}  // namespace ranktap::collector
