#include "collector/import/importers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>
#include <tuple>

#include "collector/export/exporters.h"
#include "collector/trace/symbol_name.h"
#include "tests/unit/collector/export/sample_run.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

class NsysImporterTest : public testing::Test {
 protected:
  std::string Export(const collector::Run& run) {
    const std::string path = directory_ / "run.sqlite";
    const auto traces = PointersTo(run);
    const auto failure = WriteSqlite(run, traces, {}, path);
    EXPECT_FALSE(failure) << failure->message;
    return path;
  }
  // A database made by these statements.
  std::string Make(const std::string& statements) {
    std::string path = directory_ / "made.sqlite";
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << error;
    sqlite3_close(database);
    return path;
  }
  std::vector<Trace> Import(const std::string& path) {
    Result<std::vector<Trace>> traces = ImportNsys(path);
    EXPECT_TRUE(traces.ok()) << (traces ? "" : traces.message());
    return traces ? std::move(*traces) : std::vector<Trace>();
  }

  TemporaryDirectory directory_;
};

// Everything about a row that does not depend on how names and threads are numbered, with times
// after the first of the trace.
using PlainRow = std::tuple<std::string, int64_t, int64_t, uint64_t, uint64_t, std::string>;

std::vector<PlainRow> RowsOf(const Trace& trace) {
  std::vector<PlainRow> rows;
  const int64_t zero = trace.api_calls.start[0];
  const auto add = [&](std::string name, int64_t start, int64_t end, uint64_t a, uint64_t b,
                       std::string other) {
    rows.emplace_back(std::move(name), start - zero, end - zero, a, b, std::move(other));
  };
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const Kernels& kernels = trace.kernels;
    const auto* shape = trace.dictionary.Shape(kernels.shape[i]);
    add(ReadableKernelName(trace.dictionary.String(kernels.name[i])), kernels.start[i],
        kernels.end[i], trace.lanes[kernels.lane[i]].stream, kernels.launch[i],
        std::to_string(shape->grid[0]) + "," + std::to_string(shape->registers_per_thread));
  }
  for (size_t i = 0; i < trace.copies.size(); ++i) {
    const Copies& copies = trace.copies;
    add("copy", copies.start[i], copies.end[i], copies.bytes[i], copies.launch[i],
        std::to_string(copies.copy_kind[i]) + "," + std::to_string(copies.src_kind[i]));
  }
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    const ApiCalls& calls = trace.api_calls;
    const ApiFunction& api = trace.dictionary.Api(calls.api[i]);
    add(api.name, calls.start[i], calls.end[i], calls.correlation[i],
        static_cast<uint64_t>(api.domain), std::to_string(trace.writers[calls.writer[i]].thread));
  }
  for (const Ranges* const ranges : {&trace.ranges, &trace.marks}) {
    for (size_t i = 0; i < ranges->size(); ++i) {
      // What no text can hold is replaced on the way out.
      const std::string name(trace.dictionary.String(ranges->name[i]));
      add(name.starts_with("back") ? "back" : name, ranges->start[i], ranges->end[i],
          ranges->kind[i], 0, std::string(trace.dictionary.Domain(ranges->domain[i])));
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST_F(NsysImporterTest, OurOwnExportComesBackAsItWas) {
  const collector::Run run = SampleRun(3, 40);
  const std::vector<Trace> traces = Import(Export(run));
  ASSERT_EQ(traces.size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(traces[rank].info.rank, rank);
    EXPECT_EQ(traces[rank].info.host, "node-" + std::to_string(rank));
    EXPECT_EQ(RowsOf(traces[rank]), RowsOf(run.traces[rank]));
    EXPECT_EQ(traces[rank].memory.size(), run.traces[rank].memory.size());
    EXPECT_TRUE(traces[rank].damage.empty());
  }
}

constexpr char kOldNsys[] = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  INSERT INTO StringIds VALUES (1, 'gemm(float*)'), (2, 'cudaLaunchKernel_v7000'),
                               (3, 'cuMemAlloc_v2'), (4, 'forward'), (5, 'main');
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER, shortName INTEGER, unheardOf BLOB);
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (200, 300, 0, 1, 7, 42, 281474993487872, 1, 1, x'00'),
    (250, 260, 1, 2, 9, 42, 281475010265088, 1, 1, NULL),
    (NULL, 1, 0, 1, 7, 43, 281474993487872, 1, 1, NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
    (100, 150, 281474993487879, 42, 2), (160, 170, 281474993487879, 44, 3);
  CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
    textId INTEGER, globalTid INTEGER, domainId INTEGER);
  INSERT INTO NVTX_EVENTS VALUES
    (0, NULL, 75, 'lib', NULL, 281474993487872, 3), (90, 180, 59, NULL, 4, 281474993487879, 3),
    (95, 99, 59, 'inner', NULL, 281474993487879, 3), (96, NULL, 59, 'open', NULL, 281474993487879, 3),
    (97, NULL, 33, 'category', NULL, 281474993487879, 3);
  CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
  INSERT INTO ThreadNames VALUES (5, 0, 281474993487879), (5, 0, 1660944483);
)";

TEST_F(NsysImporterTest, ColumnsThatAVersionOfNsysDoesNotWriteMayMiss) {
  const std::vector<Trace> traces = Import(Make(kOldNsys));
  ASSERT_EQ(traces.size(),
            2u);  // a process each; none for a launcher, of which only threads are known
  const Trace& trace = traces[0];
  EXPECT_EQ(trace.info.pid, 1u);
  EXPECT_FALSE(trace.info.rank);
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.dictionary.String(trace.kernels.name[0]), "gemm(float*)");
  EXPECT_EQ(trace.dictionary.Shape(trace.kernels.shape[0]), nullptr);
  ASSERT_EQ(trace.api_calls.size(), 2u);
  EXPECT_EQ(trace.kernels.launch[0], 0u);
  EXPECT_EQ(trace.dictionary.Api(trace.api_calls.api[0]).name, "cudaLaunchKernel");
  EXPECT_EQ(trace.dictionary.Api(trace.api_calls.api[1]).name, "cuMemAlloc_v2");
  EXPECT_EQ(trace.dictionary.Api(trace.api_calls.api[1]).domain, proto::ApiDomain::kDriver);
  EXPECT_EQ(trace.writers[trace.api_calls.writer[0]].name, "main");
  ASSERT_EQ(trace.ranges.size(), 3u);
  EXPECT_EQ(trace.dictionary.String(trace.ranges.name[0]), "forward");
  EXPECT_EQ(trace.dictionary.Domain(trace.ranges.domain[0]), "lib");
  EXPECT_EQ(trace.ranges.depth[1], 1u);
  EXPECT_EQ(trace.ranges.unfinished.At(2), 1u);
  EXPECT_EQ(trace.ranges.end[2], 300);
  EXPECT_EQ(traces[1].kernels.launch[0], kNone);  // the other process' call of this number
  EXPECT_THAT(trace.info.notes, testing::Contains(HasSubstr("rows without a start: 1")));
}

// The second pair is of two calls, though of one name.
TEST_F(NsysImporterTest, OneCallUnderTwoNamesAndOneCorrelationIdIsOne) {
  const std::vector<Trace> traces = Import(Make(R"(
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1, 'cudaMemcpy_v3020'), (2, 'cudaMemcpy');
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
      correlationId INTEGER, nameId INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
      (100, 900, 281474993487879, 42, 1), (101, 901, 281474993487879, 42, 2),
      (1000, 1900, 281474993487879, 43, 1), (2000, 2900, 281474993487879, 44, 2);
  )"));
  ASSERT_EQ(traces.size(), 1u);
  const ApiCalls& calls = traces[0].api_calls;
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls.start[0], 100);
  EXPECT_EQ(calls.end[0], 901);
  EXPECT_EQ(traces[0].events, 3u);
}

// ENUM_CUDA_MEM_KIND and ENUM_CUDA_DEV_MEM_EVENT_OPER of nsys count from 0, CUPTI's from 1.
TEST_F(NsysImporterTest, MemoryKindsAndOperationsAreReadAsNsysNumbersThem) {
  const std::vector<Trace> traces = Import(Make(R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, globalPid INTEGER,
      bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
      (1, 2, 16777216, 8, 1, 0, 2), (3, 4, 16777216, 8, 2, 2, 1), (5, 6, 16777216, 8, 8, NULL, 7);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, globalPid INTEGER,
      bytes INTEGER, value INTEGER, memKind INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (7, 8, 16777216, 8, 0, 4);
    CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, bytes INTEGER,
      address INTEGER, memKind INTEGER, memoryOperationType INTEGER);
    INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES
      (1, 16777216, 64, 4096, 2, 0), (9, 16777216, 64, 4096, 2, 1);
  )"));
  ASSERT_EQ(traces.size(), 1u);
  enum : uint32_t { kUnknown, kPageable, kPinned, kDevice, kArray, kManaged };
  const Copies& copies = traces[0].copies;
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies.src_kind[0], kPageable);
  EXPECT_EQ(copies.dst_kind[0], kDevice);
  EXPECT_EQ(copies.dst_kind[1], kPinned);
  EXPECT_EQ(copies.src_kind[2], kUnknown);
  EXPECT_EQ(copies.dst_kind[2], kUnknown);
  EXPECT_EQ(traces[0].memsets.memory_kind[0], kManaged);
  ASSERT_EQ(traces[0].memory.size(), 2u);
  EXPECT_EQ(traces[0].memory[0].memory_kind, kDevice);
  EXPECT_EQ(traces[0].memory[0].operation, 1u);  // CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
  EXPECT_EQ(traces[0].memory[1].operation, 2u);  // ..._RELEASE
}

TEST_F(NsysImporterTest, ADatabaseOfSomethingElseIsNamedAsThat) {
  const Result<std::vector<Trace>> traces = ImportNsys(Make("CREATE TABLE t (a)"));
  ASSERT_FALSE(traces.ok());
  EXPECT_THAT(traces.message(), HasSubstr("made.sqlite: an SQLite database without nsys' tables"));
}

TEST_F(NsysImporterTest, ViewsAreNotRun) {
  const Result<std::vector<Trace>> traces = ImportNsys(
      Make("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION "
           "ALL SELECT start + 1 FROM n) SELECT start FROM n"));
  EXPECT_FALSE(traces.ok());  // and has come back
}

uint64_t EventsOf(const std::vector<Trace>& traces) {
  uint64_t events = 0;
  for (const Trace& trace : traces) events += trace.events;
  return events;
}

// A page overwritten: what is on the others is read, and the offset of the first loss is told.
TEST_F(NsysImporterTest, APageThatCannotBeReadCostsItsRowsAndIsNamedByItsOffset) {
  const collector::Run run = SampleRun(2, 150);
  const std::string path = Export(run);
  const std::string whole = ReadFile(path);
  const uint64_t all = EventsOf(Import(path));
  const size_t page = 4096;
  int partly = 0, named = 0;
  for (size_t at = page; at < whole.size(); at += page) {
    std::string damaged = whole;
    damaged.replace(at, page, page, '\xff');
    WriteFile(path, damaged);
    const Result<std::vector<Trace>> traces = ImportNsys(path);
    if (!traces) {
      EXPECT_THAT(traces.message(), HasSubstr("offset ")) << "page at " << at;
      continue;
    }
    const uint64_t events = EventsOf(*traces);
    if (events == all) continue;  // a page of names
    ASSERT_FALSE((*traces)[0].damage.empty()) << "page at " << at;
    const Damage& damage = (*traces)[0].damage[0];
    partly += events > all / 2;
    named += damage.offset == at;
  }
  EXPECT_GT(partly, 5);
  EXPECT_GT(named, 5);
}

// Seed 20: bytes changed anywhere, files cut off anywhere.
TEST_F(NsysImporterTest, MutatedFilesAreReadOrRefused) {
  const std::string whole = ReadFile(Export(SampleRun(2, 60)));
  std::mt19937 random(20);
  const auto below = [&](size_t bound) { return random() % bound; };
  int read = 0;
  for (int round = 0; round < 200; ++round) {
    std::string mutated = whole;
    for (size_t i = below(40); i > 0; --i)
      mutated[below(mutated.size())] = static_cast<char>(random());
    if (round % 3 == 0) mutated.resize(below(mutated.size()));
    const std::string path = directory_ / "mutated.sqlite";
    WriteFile(path, mutated);
    const Result<std::vector<Trace>> traces = ImportNsys(path);
    read += traces.ok();
    if (!traces.ok()) {
      EXPECT_THAT(traces.message(), HasSubstr("mutated.sqlite: "));
    }
  }
  EXPECT_GT(read, 20);
}

}  // namespace
}  // namespace ranktap::collector
