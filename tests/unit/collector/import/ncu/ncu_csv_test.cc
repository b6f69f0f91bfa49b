// Files of ncu --csv, written here by hand in the layouts that ncu has, and a real one. Then their
// kernels joined to those of a run.
#include "collector/import/ncu/ncu_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "collector/export/exporters.h"
#include "collector/facts/roofline/join_readings.h"
#include "collector/facts/roofline/measured_work.h"
#include "collector/report/reports.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kWide =
    R"csv(==PROF== Connected to process 7 (/usr/bin/python3)
step 0, loss 2.3
"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","CC","dram__bytes.sum","gpu__time_duration.sum","sm__cycles.avg"
"","","","","","","","Mbyte","us","cycle"
"0","7","void gemm<float, 4>(float *, ""x"")","7","(256, 1, 1)","(80, 2, 1)","8.0","12.58","1,205.00","9"
==PROF== Disconnected from process 7
"1","7","add(int)","7","(64, 1, 1)","(4, 1, 1)","8.0","n/a","3","1"
)csv";

std::string Long(const std::string& rows) {
  return R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",)"
         R"("Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",)"
         R"("Metric Value")"
         "\n" +
         rows;
}
std::string Row(const std::string& id, const std::string& kernel, const std::string& grid,
                const std::string& metric, const std::string& unit, const std::string& value,
                const std::string& process = "7") {
  return "\"" + id + "\",\"" + process + "\",\"p\",\"h\",\"" + kernel +
         "\",\"1\",\"7\",\"(64, 1, 1)\",\"(" + grid +
         ", 1, 1)\",\"0\",\"8.0\",\"Command line profiler metrics\",\"" + metric + "\",\"" + unit +
         "\",\"" + value + "\"\n";
}
NcuFile Read(std::string_view text) {
  Result<NcuFile> file = ParseNcu(text, &TellsOfWork);
  EXPECT_TRUE(file) << file.message();
  return file ? std::move(*file) : NcuFile{};
}
std::string WhyNot(const std::string& text) { return ParseNcu(text, &TellsOfWork).message(); }

TEST(NcuCsvTest, TheWideRawPageHasItsUnitsInARowOfTheirOwn) {
  const NcuFile file = Read(kWide);
  ASSERT_EQ(file.kernels.size(), 2u);
  EXPECT_EQ(file.kernels[0].name, "void gemm<float, 4>(float *, \"x\")");
  EXPECT_THAT(file.kernels[0].grid, ElementsAre(80, 2, 1));
  EXPECT_THAT(file.kernels[0].block, ElementsAre(256, 1, 1));
  EXPECT_THAT(file.kernels[0].readings, ElementsAre(Pair("dram__bytes.sum", 12'580'000),
                                                    Pair("gpu__time_duration.sum", 1'205'000)));
  EXPECT_THAT(file.kernels[1].readings, ElementsAre(Pair("gpu__time_duration.sum", 3'000)));
  EXPECT_EQ(file.absent, 1u);
  EXPECT_FALSE(file.is_ambiguous);
}

TEST(NcuCsvTest, LinesMayEndAsOnWindowsAndBeginWithAByteOrderMark) {
  std::string text = "\xef\xbb\xbf";
  for (const char c : kWide) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const NcuFile file = Read(text);
  ASSERT_EQ(file.kernels.size(), 2u);
  EXPECT_EQ(file.kernels[1].readings.size(), 1u);
}

TEST(NcuCsvTest, LongRowsOfOneKernelAreOneKernelAndUnknownMetricsAreNobodys) {
  const NcuFile file = Read(Long(Row("0", "k", "4", "dram__bytes.sum", "Kbyte", "1.50") +
                                 Row("0", "k", "4", "sm__fancy.sum", "furlong", "3") +
                                 Row("0", "k", "4", "dram__bytes.sum", "Kbyte", "1.50") +
                                 Row("0", "k", "4", "lts__t_bytes.sum", "byte", "98,304") +
                                 Row("0", "other", "4", "lts__t_bytes.sum", "byte", "1", "8") +
                                 Row("1", "k", "4", "lts__t_bytes.sum", "byte", "1,048,576")));
  ASSERT_EQ(file.kernels.size(), 2u) << "those of the process with most";
  EXPECT_EQ(file.left_out, 1u);
  EXPECT_THAT(file.kernels[0].readings,
              ElementsAre(Pair("dram__bytes.sum", 1'500), Pair("lts__t_bytes.sum", 98'304)));
  EXPECT_THAT(file.kernels[1].readings, ElementsAre(Pair("lts__t_bytes.sum", 1'048'576)));
}

TEST(NcuCsvTest, TheFileTellsWhetherAPointOrACommaBeginsTheFraction) {
  const auto value = [](const std::string& number, const std::string& beside) {
    return Read(Long(Row("0", "k", "4", "dram__bytes.sum", "byte", number) +
                     Row("0", "k", "4", "lts__t_bytes.sum", "byte", beside)))
        .kernels.at(0)
        .readings.at(0)
        .second;
  };
  EXPECT_EQ(value("98,304", "0.50"), 98'304);
  EXPECT_EQ(value("98.304", "0,50"), 98'304);
  EXPECT_EQ(value("98.304", "1.048.576"), 98'304);
  EXPECT_EQ(value("1.205,25", "9,00"), 1205.25);
  EXPECT_EQ(value("1\xe2\x80\xaf"
                  "205,25",
                  "7"),
            1205.25);
  EXPECT_EQ(value("98,304", "7"), 98'304) << "as ncu writes it under LC_ALL=C";
  const NcuFile file = Read(Long(Row("0", "k", "4", "dram__bytes.sum", "byte", "98.304")));
  EXPECT_TRUE(file.is_ambiguous);
}

TEST(NcuCsvTest, WhatCannotBeReadIsNamedByItsLine) {
  EXPECT_THAT(WhyNot("loss 2.3\n"), HasSubstr("no file of ncu --csv"));
  EXPECT_THAT(WhyNot(""), HasSubstr("no file of ncu --csv"));
  const std::string good = Row("0", "k", "4", "dram__bytes.sum", "byte", "9.25");
  EXPECT_EQ(WhyNot(Long(good + good.substr(0, 60))),
            "3: a quote that nothing closes: the file was cut off");
  EXPECT_EQ(WhyNot(Long(good + "\"0\",\"7\"\n")), "3: 2 fields below a heading of 15");
  EXPECT_THAT(WhyNot(Long(good + Row("0", "k", "4", "lts__t_bytes.sum", "sector", "3"))),
              HasSubstr("3: lts__t_bytes.sum in 'sector', a unit that ranktap does not know"));
  EXPECT_THAT(WhyNot(Long(good + Row("0", "k", "4", "lts__t_bytes.sum", "byte", "3,5"))),
              HasSubstr("3: lts__t_bytes.sum: '3,5' is no number, or one of another locale"));
  EXPECT_THAT(WhyNot(Long(good + Row("0", "k", "4", "lts__t_bytes.sum", "byte", "many"))),
              HasSubstr("3: lts__t_bytes.sum: 'many' is no number"));
  const std::string wide(kWide);
  EXPECT_THAT(WhyNot(wide + wide.substr(wide.rfind("\"1\",\"7\""))),
              HasSubstr("8: the kernel with the ID 1 is there twice"));
}

// Under the sanitizers this reads no byte beyond the text, wherever it was cut or spoiled.
TEST(NcuCsvTest, ACutOrSpoiledFileIsReadOrRefused) {
  const std::string rows = Row("0", "k", "4", "dram__bytes.sum", "byte", "9.25");
  for (const std::string& text : {std::string(kWide), Long(rows + rows)}) {
    for (size_t at = 0; at < text.size(); ++at) {
      const Result<NcuFile> cut = ParseNcu(text.substr(0, at), &TellsOfWork);
      EXPECT_LE(cut ? cut->kernels.size() : 0, 2u);
      for (const char byte : {'"', ',', '\n', '\0', '9'}) {
        std::string spoiled = text;
        spoiled[at] = byte;
        const Result<NcuFile> read = ParseNcu(spoiled, &TellsOfWork);
        EXPECT_LE(read ? read->kernels.size() : 0, 3u);
      }
    }
  }
}

// Two steps of a product by cuBLAS and two additions of one name, whose grids differ.
std::string Program() {
  std::string events;
  for (int step = 0; step < 4; ++step) {
    const int t = step * 1000;
    const auto launched = [&events](const std::string& op, const std::string& dims,
                                    const std::string& kernel, int at, int id, int grid) {
      const std::string inputs = "\"Input Dims\":" + dims + R"(,"Input type":["float","float"])";
      events += (events.empty() ? "" : ",") + Span("cpu_op", op, at, 80, inputs) + "," +
                Call("cudaLaunchKernel", at + 10, 10, id) + "," +
                Work("kernel", kernel, at + 40, 25, id,
                     ",\"grid\":[" + std::to_string(grid) + ",1,1],\"block\":[64,1,1]");
    };
    events += (events.empty() ? "" : ",") +
              Span("user_annotation", "ProfilerStep#" + std::to_string(step), t, 900);
    launched("aten::mm", "[[64,128],[128,256]]", "void gemm<float>(float*)", t + 100, 10 * step + 1,
             80);
    launched("aten::add", "[[64,256],[64,256]]", "void add<int>(int)", t + 300, 10 * step + 2, 4);
    launched("aten::mul", "[[8,256],[8,256]]", "void add<int>(int)", t + 500, 10 * step + 3, 2);
  }
  return File("", events);
}
ReadKernel Reading(const std::string& name, uint32_t grid, double bytes) {
  return {name, {grid, 1, 1}, {64, 1, 1}, {{"dram__bytes.sum", bytes}}};
}
std::string OperatorOf(const Trace& trace, double bytes) {
  for (const MeasuredKernel& kernel : JoinKernelCounters(trace).kernels) {
    if (kernel.work.device.sum() != bytes) continue;
    return kernel.innermost == kNone
               ? "none"
               : std::string(trace.dictionary.String(trace.operators.name[kernel.innermost]));
  }
  return "no such reading";
}

TEST(NcuJoinTest, ASequenceOfTheRunIsJoinedInItsOrderAndTheRunKeepsItsTimes) {
  const collector::Run run = OpenText(Program());
  const Trace& trace = run.traces.at(0);
  const JoinedReadings& joined = KnowReadings(
      {Reading("gemm", 80, 100), Reading("add", 4, 200), Reading("add", 2, 300)}, trace);
  EXPECT_TRUE(joined.in_order);
  EXPECT_EQ(joined.joined, 3u);
  EXPECT_EQ(OperatorOf(trace, 100), "aten::mm");
  EXPECT_EQ(OperatorOf(trace, 200), "aten::add");
  EXPECT_EQ(OperatorOf(trace, 300), "aten::mul");
  const Table table = TabulateCounters(run, {.by = "operator"});
  const size_t product = RowWith<std::string>(table, "name", "aten::mm");
  EXPECT_EQ(CellAt<int64_t>(table, product, "time_ns"), 25'000);
  EXPECT_EQ(CellAt<int64_t>(table, product, "analytic_flops"), 4'194'304) << "of one launch";
}

TEST(NcuJoinTest, WithoutTheSequenceEachNameAndGridHasItsOwnOrder) {
  const collector::Run run = OpenText(Program());
  const Trace& trace = run.traces.at(0);
  const JoinedReadings& joined =
      KnowReadings({Reading("add", 2, 300), Reading("add", 2, 400), Reading("add", 4, 200),
                    Reading("add", 9, 500), Reading("absent", 1, 600)},
                   trace);
  EXPECT_FALSE(joined.in_order);
  EXPECT_EQ(joined.joined, 3u);
  EXPECT_THAT(joined.missing, ElementsAre(Pair("absent", 1), Pair("add", 1)));
  EXPECT_EQ(OperatorOf(trace, 400), "aten::mul");
  EXPECT_EQ(OperatorOf(trace, 200), "aten::add");
  EXPECT_EQ(OperatorOf(trace, 500), "none");
}

// ncu's sets have rates, by seconds and by cycles. A product of 64 x 256 with 256 x 256 floats.
TEST(NcuJoinTest, ASetOfNcusOwnGivesTheSumsThatItsRatesAreOf) {
  std::ifstream text(RANKTAP_TEST_DATA "/ncu/h200-set-roofline.csv");
  const Result<NcuFile> file =
      ParseNcu(std::string{std::istreambuf_iterator<char>(text), {}}, &TellsOfWork);
  ASSERT_TRUE(file) << file.message();
  const collector::Run run = OpenText(Program());
  KnowReadings(file->kernels, run.traces.at(0));
  const std::vector<MeasuredKernel> kernels = JoinKernelCounters(run.traces.at(0)).kernels;
  ASSERT_EQ(kernels.size(), 3u);
  const MeasuredWork& product = kernels[0].work;
  EXPECT_THAT(kernels[0].name, HasSubstr("sgemm_64x64_8x5_tn"));
  EXPECT_NEAR(*product.Flops(), 2.0 * 64 * 256 * 256, 0.01 * 2.0 * 64 * 256 * 256);
  EXPECT_NEAR(*product.device.sum(), 356'864, 1);
  EXPECT_NEAR(*product.l2.sum(), 750'752, 1);
  EXPECT_EQ(product.duration_ns.sum(), 6'976);
}

// Of `export --format roofline`: peaks that are given, so that the device needs no name.
std::string PictureOf(const collector::Run& run) {
  const TemporaryDirectory directory;
  ExportOptions options;
  options.roofline.peak_flops = 1e13;
  options.roofline.peak_bandwidth = 1e12;
  const auto failure = WriteRoofline(run, {}, options, directory / "x.html");
  EXPECT_FALSE(failure) << failure->message;
  std::ifstream file(directory / "x.html");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NcuJoinTest, ThePictureHasAMarkForEachLevelWhoseBytesWereCounted) {
  const collector::Run run = OpenText(Program());
  const std::string ffma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
  KnowReadings({{"gemm",
                 {80, 1, 1},
                 {64, 1, 1},
                 {{ffma, 2'097'152},
                  {"l1tex__t_bytes.sum", 4'194'304},
                  {"lts__t_bytes.sum", 2'097'152},
                  {"dram__bytes.sum", 1'048'576}}}},
               run.traces.at(0));
  const std::string page = PictureOf(run);
  // 4,194,304 FLOPs in the 25 us that the run's own kernel took.
  for (const auto& [level, intensity] :
       {std::pair("L1", 1), std::pair("L2", 2), std::pair("memory", 4)}) {
    EXPECT_THAT(page,
                HasSubstr("aten::mm\nby the bytes that passed " + std::string(level) +
                          "\n168 GFLOP/s at " + std::to_string(intensity) + " FLOP/B, 25 us"));
  }
  EXPECT_THAT(page, HasSubstr("Triangles, squares and diamonds, of 1 rows"));
  EXPECT_THAT(page, HasSubstr("aten::mm: the device&#39;s memory moved 4.6 times"));
}

TEST(NcuJoinTest, ATensorCoresProductIsPlacedByTheFlopsOfItsShapes) {
  const collector::Run run = OpenText(Program());
  KnowReadings({{"gemm",
                 {80, 1, 1},
                 {64, 1, 1},
                 {{"sm__inst_executed_pipe_tensor.sum", 512}, {"lts__t_bytes.sum", 2'097'152}}}},
               run.traces.at(0));
  EXPECT_THAT(PictureOf(run), HasSubstr("passed L2\n168 GFLOP/s at 2 FLOP/B"));
}

TEST(NcuJoinTest, AFileWithoutGridsIsJoinedByNameAndOrder) {
  const collector::Run run = OpenText(Program());
  const Trace& trace = run.traces.at(0);
  const JoinedReadings& joined = KnowReadings({{"add(int)", {}, {}, {{"dram__bytes.sum", 1}}},
                                               {"add(int)", {}, {}, {{"dram__bytes.sum", 2}}}},
                                              trace);
  EXPECT_FALSE(joined.by_shape);
  EXPECT_TRUE(joined.in_order);
  EXPECT_EQ(OperatorOf(trace, 2), "aten::mul");
  EXPECT_THAT(joined.missing, IsEmpty());
}

}  // namespace
}  // namespace ranktap::collector
