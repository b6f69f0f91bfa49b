// Files of torch.profiler as other programs rewrite them: spaced otherwise, packed, joined, nested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "collector/file/json.h"
#include "collector/import/byte_source.h"
#include "collector/import/importers.h"
#include "collector/report/report.h"
#include "collector/report/reports.h"
#include "collector/report/text/table_text.h"
#include "nlohmann/json.hpp"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

std::string Repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// What json.dumps(indent=2) makes of a text; `compact`: what separators=(",", ":") does.
std::string Respaced(const std::string& text, bool compact) {
  std::string out;
  size_t depth = 0;
  bool quoted = false;
  const auto new_line = [&] { out += compact ? "" : "\n" + std::string(2 * depth, ' '); };
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (quoted) {
      out += byte;
      if (byte == '\\') out += text[++i];
      quoted = byte != '"';
      continue;
    }
    if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') continue;
    const bool opens = byte == '[' || byte == '{';
    if (byte == ']' || byte == '}') --depth, new_line();
    out += byte;
    if (opens) ++depth;
    if (opens || byte == ',') new_line();
    if (byte == ':' && !compact) out += ' ';
    quoted = byte == '"';
  }
  return out;
}

std::string ReadAll(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  EXPECT_TRUE(source) << source.message();
  std::string all, piece(1 << 20, '\0');
  while (const size_t got = source->Read(piece.data(), piece.size())) all.append(piece, 0, got);
  return all;
}

std::vector<std::string> Answers(const std::string& text) {
  collector::Run run = OpenText(text);
  run.path = "x";
  std::vector<std::string> answers;
  for (Trace& trace : run.traces) {
    trace.path = trace.info.file = "x";
    trace.info.bytes = 0;
  }
  for (const Report& report : AllReports()) {
    answers.push_back(
        std::string(report.name) + "\n" +
        FormatJson(report.compare != nullptr ? report(run, run) : report(run, ReportOptions{}), 0));
  }
  return answers;
}

// Names the table that differs, not a megabyte of answers.
void ExpectSame(const std::vector<std::string>& answers, const std::vector<std::string>& before,
                const std::string& what) {
  ASSERT_EQ(answers.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const auto [a, b] = std::ranges::mismatch(answers[i], before[i]);
    EXPECT_TRUE(answers[i] == before[i])
        << what << ": " << before[i].substr(0, before[i].find('\n')) << ": "
        << std::string(b, before[i].end()).substr(0, 200) << "\ninstead\n"
        << std::string(a, answers[i].end()).substr(0, 200);
  }
}

const std::string kMatrixProduct = File(
    R"("rank":0,"world_size":1)",
    Span("cpu_op", "aten::mm", 1, 20,
         R"("External id":1,"Input Dims":[[8, 16], [16, 4]],"Input type":["float", "float"])") +
        "," + Call("cudaLaunchKernel", 5, 3, 9) + "," +
        Work("kernel", "gemm", 10, 4, 9, R"(,"External id":1,"grid":[1, 2, 3])"));

TEST(KinetoDialects, TheSpacesOfAFileChangeNoAnswer) {
  const Table ops = TabulateOps(OpenText(Respaced(kMatrixProduct, false)), {});
  EXPECT_EQ(CellAt<int64_t>(ops, 0, "flops"), 2 * 8 * 16 * 4);
  const std::vector<std::string> before = Answers(kMatrixProduct);
  ExpectSame(Answers(Respaced(kMatrixProduct, false)), before, "indented");
  ExpectSame(Answers(Respaced(kMatrixProduct, true)), before, "compact");
  ExpectSame(Answers("\n" + std::string(5000, ' ') + kMatrixProduct + "\r\n"), before, "padded");
}

// The real ones, where they are: they lie beside the repository.
TEST(KinetoDialects, TheSpacesOfRealFilesChangeNoAnswer) {
  const std::filesystem::path data = RANKTAP_SHARED_DATA "/kineto";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  for (const char* const name :
       {"alexnet-a100.json.gz", "backward-thread.json", "cpu-only.json.gz",
        "cuda-graphs-vllm.json.gz", "bert-small-h100.json.gz", "triton.json.gz"}) {
    const std::string text = ReadAll((data / name).string());
    const std::vector<std::string> as_written = Answers(text);
    ExpectSame(Answers(Respaced(text, false)), as_written, name);
    ExpectSame(Answers(Respaced(text, true)), as_written, name);
  }
}

TEST(KinetoDialects, TheUnitToDisplayIsNotTheUnitOfTimes) {
  const std::string events = R"("traceEvents":[)" + Work("kernel", "k", 3, 5, 1) + "]";
  for (const std::string head :
       {"", R"("displayTimeUnit":"ns",)", R"("displayTimeUnit":"ms","baseTimeNanoseconds":7,)",
        R"("displayTimeUnit":"ns","baseTimeNanoseconds":"7",)"}) {
    const collector::Run run = OpenText("{" + head + events + "}");
    EXPECT_EQ(run.traces.at(0).kernels.end[0] - run.traces.at(0).kernels.start[0], 5000) << head;
  }
}

TEST(KinetoDialects, AMillionBracketsAreDamageAndNoCrash) {
  for (const size_t depth : {size_t{1000}, size_t{1'000'000}}) {
    for (const std::string& nested :
         {Repeated("[", depth) + Repeated("]", depth), "\"" + Repeated("[", depth) + "\"",
          Repeated("[", depth), Repeated(R"({"a":)", depth) + "1" + Repeated("}", depth)}) {
      TemporaryDirectory directory;
      Write(directory / "x.json",
            File(R"("rank":1,"pg_config":[{"pg_name":"0","ranks":)" + nested + "}]",
                 Span("cpu_op", "aten::mm", 1, 1, R"("Input Dims":)" + nested)));
      const Result<std::vector<Trace>> traces = ImportKineto(directory / "x.json");
      if (traces) TabulateGroups(OpenText(ReadAll(directory / "x.json")), {});
    }
  }
  const collector::Run run =
      OpenText(File(R"("pg_config":)" + Repeated("[", 1000) + Repeated("]", 1000),
                    Span("cpu_op", "aten::mm", 1, 1)));
  ASSERT_FALSE(run.traces.at(0).damage.empty());
  EXPECT_THAT(run.traces[0].damage[0].what, HasSubstr("nests deeper"));
  EXPECT_EQ(run.traces[0].operators.size(), 1u);
}

TEST(Json, NestsNoDeeperThanWhatCanBeCopied) {
  const auto nested = [](size_t depth) { return Repeated("[", depth) + Repeated("]", depth); };
  EXPECT_FALSE(ParseJson(nested(kDeepestJson)).is_discarded());
  EXPECT_TRUE(ParseJson(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_FALSE(IsJson(nested(1'000'000)));
  EXPECT_TRUE(IsJson("\"" + Repeated("[", 1000) + "\\\"" + Repeated("[", 1000) + "\""));
}

std::string Utf16(const std::string& text, bool big_endian) {
  std::string wide = big_endian ? "\xfe\xff" : "\xff\xfe";
  for (const char byte : text) {
    if (big_endian) wide += '\0';
    wide += byte;
    if (!big_endian) wide += '\0';
  }
  return wide;
}

std::string Gzipped(const std::string& text) {
  TemporaryDirectory directory;
  gzFile file = gzopen((directory / "x").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ifstream in(directory / "x", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OpenRun, NamesWhatAFileIsInsteadOfATrace) {
  using std::string_literals::operator""s;
  EXPECT_THAT(WhyNotOpened("PK\x03\x04\x14\0"s), HasSubstr("x.json: is a zip archive: unpack it"));
  EXPECT_THAT(WhyNotOpened("BZh91AY&SY"), HasSubstr("bunzip2"));
  EXPECT_THAT(WhyNotOpened(Utf16(kMatrixProduct, false)), HasSubstr("is UTF-16"));
  EXPECT_THAT(WhyNotOpened(Utf16(kMatrixProduct, true)), HasSubstr("is UTF-16"));
  EXPECT_THAT(WhyNotOpened(Utf16(kMatrixProduct, false).substr(2)), HasSubstr("is UTF-16"));
  EXPECT_THAT(WhyNotOpened("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(WhyNotOpened(Gzipped(Gzipped(kMatrixProduct))), HasSubstr("gzip twice"));
}

TEST(OpenRun, AFileThatNobodyReadsIsMissedInItsDirectory) {
  TemporaryDirectory directory;
  Write(directory / "rank0.json", kMatrixProduct);
  Write(directory / "rank1.json", "version https://git-lfs.github.com/spec/v1\n");
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(run->traces.size(), 1u);
  EXPECT_THAT(run->problems,
              testing::ElementsAre(HasSubstr("rank1.json: is a pointer of git LFS")));
}

std::string Launches(int pid) {
  std::string events;
  for (int i = 1; i <= 20; ++i) {
    events += (i > 1 ? "," : "") + Call("cudaLaunchKernel", 10 * i, 2, i, pid) + "," +
              Work("kernel", "k", 10 * i + 5, 3, i);
  }
  return events;
}

TEST(KinetoDialects, RanksThatSomebodyJoinedAreNotReadAsOne) {
  EXPECT_THAT(
      WhyNotOpened(File("", Launches(10) + "," + Launches(12))),
      HasSubstr("several ranks joined in one file: 2 processes ran operators in it (10, 12)"));
  EXPECT_THAT(WhyNotOpened(File("", Launches(10) + "," + Launches(10))),
              HasSubstr("its correlation ids are given more than once"));
  // Of containers without a device: one pid, no correlation.
  std::string operators;
  for (int i = 1; i <= 20; ++i) {
    operators += (i > 1 ? "," : "") +
                 Span("cpu_op", "aten::mm", 10 * i, 5, R"("External id":)" + std::to_string(i));
  }
  EXPECT_THAT(WhyNotOpened(File("", operators + "," + operators)),
              HasSubstr("its correlation ids are given more than once"));
  EXPECT_EQ(OpenText(File("", operators)).traces.at(0).operators.size(), 20u);
  const collector::Run one = OpenText(File("", Launches(10)) + File("", Launches(10)));
  EXPECT_EQ(one.traces.at(0).kernels.size(), 20u);
  ASSERT_EQ(one.traces[0].damage.size(), 1u);
  EXPECT_THAT(one.traces[0].damage[0].what, HasSubstr("something follows the end of the trace"));
}

TEST(KinetoDialects, WaitsThatADeviceOfMtiaRecordsItselfAreNoSecondRank) {
  const std::string wait =
      R"({"ph":"X","cat":"mtia_runtime","name":"synchronize","pid":17,"tid":3568,"ts":500,"dur":1,)"
      R"("args":{"correlation":1000000000,"device":17,"stream_id":102}})";
  const collector::Run run = OpenText(File("", Launches(10) + "," + wait));
  EXPECT_EQ(run.traces.at(0).kernels.size(), 20u);
  EXPECT_EQ(run.traces[0].api_calls.size(), 21u);
}

}  // namespace
}  // namespace ranktap::collector
