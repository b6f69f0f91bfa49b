// Chakra's execution traces as a strict reader takes them, and what they say of runs whose answers
// are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "collector/export/exporter.h"
#include "collector/export/graph/chakra_text.h"
#include "collector/export/output_file.h"
#include "collector/import/execution/chakra_file.h"
#include "collector/import/open_run.h"
#include "tests/unit/collector/export/graph/strict_chakra_reader.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"

namespace ranktap::collector {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::SizeIs;

const std::string kData = RANKTAP_TEST_DATA "/et/";

std::string BytesOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Exported {
 public:
  explicit Exported(const collector::Run& run, const ExportOptions& options = {}) {
    std::vector<const Trace*> traces;
    for (const Trace& trace : run.traces) traces.push_back(&trace);
    const auto failure = FindExporter("chakra")->write(run, traces, options, folder());
    EXPECT_FALSE(failure) << failure->message;
  }
  explicit Exported(const std::string& path, const ExportOptions& options = {})
      : Exported(*OpenRun({path}), options) {}

  std::string folder() const { return directory_ / "et"; }
  std::string File(int rank) const { return folder() + "/rank." + std::to_string(rank) + ".et"; }
  StrictChakraReader Rank(int rank) const {
    StrictChakraReader reader(File(rank));
    reader.Check();
    return reader;
  }
  std::string Groups() const { return BytesOf(folder() + "/comm_group.json"); }

 private:
  TemporaryDirectory directory_;
};

std::vector<uint64_t> DataOf(const chakra::Node& node) {
  return {node.data_deps().begin(), node.data_deps().end()};
}

TEST(ChakraExport, ImportedFilesKeepNodesEdgesAndAttributes) {
  for (const auto& [name, ranks] : {std::pair("astra2", 2), std::pair("astra4", 4)}) {
    const Exported out(kData + name);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string file = kData + name + "/rank." + std::to_string(rank) + ".et";
      EXPECT_EQ(BytesOf(out.File(rank)), BytesOf(file)) << file;
    }
    EXPECT_EQ(out.Groups(), BytesOf(kData + name + "/rank.comm_group.json"));
  }
  // Without the node that ASTRA-sim aborts on: what depended on it has what it did.
  const StrictChakraReader without(Exported(kData + "et4").File(3));
  const StrictChakraReader original(kData + "et4/rank.3.et");
  ASSERT_EQ(without.nodes().size() + 1, original.nodes().size());
  EXPECT_THAT(without.OfType(chakra::METADATA_NODE), SizeIs(0));
  EXPECT_EQ(without.nodes()[1].name(), "aten::addmm");
  EXPECT_THAT(DataOf(without.nodes()[1]), ElementsAre(1u));
}

TEST(ChakraExport, MetadataOfAnImportedFileLosesWhatLooksLikeACredential) {
  TemporaryDirectory directory;
  const std::string path = directory / "rank.0.et";
  {
    Result<ChakraFile> source = ChakraFile::Open(kData + "astra2/rank.0.et");
    Result<OutputFile> file = OutputFile::Create(path);
    ASSERT_TRUE(source && file);
    chakra::GlobalMetadata metadata = source->metadata();
    for (const auto& [name, value] : {std::pair("API_TOKEN", "s3cr3tvalue"), {"team", "vision"}}) {
      chakra::AttributeProto* const attribute = metadata.add_attr();
      attribute->set_name(name);
      attribute->set_string_val(value);
    }
    WriteMessage(metadata, &*file);
    for (chakra::Node node; source->Next(&node);) WriteMessage(node, &*file);
    ASSERT_FALSE(file->Close());
  }
  ASSERT_NE(BytesOf(path).find("s3cr3tvalue"), std::string::npos);
  const std::string copied = BytesOf(Exported(path).File(0));
  EXPECT_EQ(copied.find("s3cr3tvalue"), std::string::npos);
  EXPECT_NE(copied.find("vision"), std::string::npos);
}

TEST(ChakraExport, StockFilesLoseWhatResolvesToNothing) {
  const StrictChakraReader reader = StrictChakraReader(Exported(kData + "stock.0.et").File(0));
  ASSERT_GT(reader.nodes().size(), 20u);
  uint64_t id = 0;
  for (const chakra::Node& node : reader.nodes()) {
    EXPECT_EQ(node.id(), ++id);
    for (const uint64_t on : node.ctrl_deps()) EXPECT_GE(on, 1u);
  }
  EXPECT_THAT(reader.OfType(chakra::COMM_SEND_NODE), SizeIs(0));  // they have no peer
}

TEST(ChakraExport, NcclsCallsAreCommunicationWithPeers) {
  const Exported out(kData + "pair");
  for (int rank : {0, 1}) {
    const StrictChakraReader reader = out.Rank(rank);
    EXPECT_THAT(reader.OfType(chakra::COMM_COLL_NODE), SizeIs(2));
    const auto pairs = reader.OfType(rank == 0 ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    ASSERT_THAT(pairs, SizeIs(2));
    for (const chakra::Node* const node : pairs) {
      EXPECT_EQ(ChakraNumber(*node, "comm_src"), 0);
      EXPECT_EQ(ChakraNumber(*node, "comm_dst"), 1);
      EXPECT_EQ(ChakraNumber(*node, "comm_size"), 65536 * 4);
    }
    EXPECT_EQ(ChakraNumber(*pairs[1], "comm_tag"), 1);
    EXPECT_EQ(ChakraNumber(*reader.OfType(chakra::COMM_COLL_NODE)[0], "comm_size"), 262144 * 4);
  }
}

TEST(ChakraExport, CopiesAndMemsetsStayAndWaitsAreNoWork) {
  const StrictChakraReader reader = Exported(kData + "pair").Rank(0);
  EXPECT_THAT(reader.Named("Memset (Device)"), SizeIs(2));
  EXPECT_THAT(reader.Named("Memcpy DtoH"), SizeIs(2));
  const auto waits = reader.Named("cudaStreamSynchronize");
  ASSERT_THAT(waits, SizeIs(2));
  // It waited 1234 us for the copy, which is its dependency instead.
  EXPECT_EQ(ChakraNumber(*waits[0], "duration_ns"), 0);
  EXPECT_THAT(DataOf(*waits[0]), Contains(reader.Named("Memcpy DtoH")[0]->id()));
  EXPECT_LT(ChakraNumber(*reader.Named("aten::item")[0], "duration_ns"), 20'000);
}

TEST(ChakraExport, WorkFollowsItsLaunchItsStreamItsTensorsAndItsCommunicator) {
  const StrictChakraReader reader = Exported(kData + "pair").Rank(0);
  const auto gemms = reader.Named("ampere_sgemm_128x64_tn"), sets = reader.Named("Memset");
  const auto products = reader.Named("ampere_sgemm_64x64_nt"),
             reduces = reader.Named("ncclDevKernel_All");
  EXPECT_THAT(DataOf(*gemms[0]), Contains(reader.Named("aten::addmm")[0]->id()));
  EXPECT_THAT(DataOf(*sets[0]), Contains(gemms[0]->id()));
  EXPECT_THAT(DataOf(*products[0]), Contains(gemms[0]->id()));  // it takes what that made
  EXPECT_THAT(DataOf(*reduces[1]), Contains(reader.Named("ncclDevKernel_SendRecv")[0]->id()));
  EXPECT_EQ(ChakraText(*products[0], "phase"), "backward");
  EXPECT_EQ(ChakraText(*gemms[0], "phase"), "forward");
}

TEST(ChakraExport, GloosCallsAreCommunicationToo) {
  const Exported out(kData + "gloo");
  for (int rank : {0, 1}) {
    const StrictChakraReader reader = out.Rank(rank);
    EXPECT_THAT(reader.OfType(chakra::COMM_COLL_NODE), SizeIs(6));
    const auto pairs = reader.OfType(rank == 0 ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    ASSERT_THAT(pairs, SizeIs(2));
    EXPECT_EQ(ChakraNumber(*pairs[1], "comm_tag"), 2);  // as the program gave it
    EXPECT_EQ(ChakraNumber(*pairs[1], "comm_dst"), 1);
    const auto reduces = reader.Named("gloo:all_reduce");
    EXPECT_EQ(ChakraNumber(*reduces[0], "comm_size"), 9352 * 4);
    EXPECT_TRUE(reader.Follows(*reduces[1], reduces[0]->id()));
    EXPECT_THAT(DataOf(*reduces[0]), Contains(reader.Named("c10d::allreduce_")[0]->id()));
    EXPECT_EQ(ChakraNumber(*reader.Named("aten::addmm")[0], "num_ops"), 2 * 16 * 64 * 128);
    EXPECT_EQ(ChakraText(*reader.Named("Optimizer.step")[0], "phase"), "optimizer");
  }
}

TEST(ChakraExport, ExecutionTracesAloneHaveNoDurationsAndTheirCommunication) {
  const Exported out(kData + "gloo/host.0.json.gz");
  const StrictChakraReader gloo = out.Rank(0);
  EXPECT_THAT(gloo.OfType(chakra::COMM_COLL_NODE), SizeIs(6));
  for (const chakra::Node& node : gloo.nodes()) EXPECT_EQ(node.duration_micros(), 0u);
  const StrictChakraReader nccl = Exported(kData + "pair/host.1.json.gz").Rank(1);
  EXPECT_THAT(nccl.OfType(chakra::COMM_COLL_NODE), SizeIs(2));
}

TEST(ChakraExport, OneStreamWaitsForWhatAnotherRecorded) {
  const auto on = [](int stream, const std::string& name, int ts, int dur, int correlation) {
    return Span("kernel", name, ts, dur,
                R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
                    std::to_string(correlation),
                0, stream);
  };
  const collector::Run run = OpenText(File(
      "", Call("cudaLaunchKernel", 10, 5, 1) + "," + Call("cudaStreamWaitEvent", 20, 2, 2) + "," +
              Call("cudaLaunchKernel", 30, 5, 3) + "," + on(7, "first", 40, 100, 1) + "," +
              on(8, "second", 145, 10, 3) + "," +
              Span("cuda_sync", "Stream Wait Event", 20, 2,
                   R"("device":0,"stream":8,"correlation":2,"cuda_sync_kind":"Stream Wait Event",)"
                   R"("wait_on_stream":7,"wait_on_cuda_event_record_corr_id":0,)"
                   R"("wait_on_cuda_event_id":1)",
                   0, 8)));
  const StrictChakraReader reader = Exported(run).Rank(0);
  ASSERT_THAT(reader.Named("second"), SizeIs(1));
  EXPECT_THAT(DataOf(*reader.Named("second")[0]), Contains(reader.Named("first")[0]->id()));
}

TEST(ChakraExport, RowsThatWereTakenAreInNoCopyAndInNoDependency) {
  collector::Run chakra = std::move(*OpenRun({kData + "astra2"}));
  for (Trace& trace : chakra.traces) {
    trace.api_calls.start.Truncate(1);
    trace.memo.Reset();
  }
  EXPECT_NE(BytesOf(Exported(chakra).File(0)), BytesOf(kData + "astra2/rank.0.et"));
}

TEST(ChakraExport, CapturesOfOurOwnAreReadByTheStrict) {
  for (const std::string name : {"standin-full", "torch-ddp", "standin-kernels"}) {
    const std::string path = RANKTAP_TEST_DATA "/../golden/inputs/" + name;
    const Exported out(path);
    const StrictChakraReader reader = out.Rank(0);
    EXPECT_GT(reader.nodes().size(), 50u) << name;
    if (name == "torch-ddp") {
      EXPECT_GT(reader.OfType(chakra::COMM_COLL_NODE).size(), 3u);
    }
  }
}

}  // namespace
}  // namespace ranktap::collector
