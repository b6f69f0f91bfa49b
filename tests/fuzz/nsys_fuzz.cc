// The reader of nsys' SQLite files: a small database of every table, its bytes edited.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>

#include "collector/import/importers.h"
#include "tests/fuzz/edits.h"

using namespace ranktap;

namespace {

// Pages of 512 bytes: many of them, and small files.
constexpr char kSample[] = R"(
  PRAGMA page_size = 512;
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  INSERT INTO StringIds VALUES (1, 'gemm(float*)'), (2, 'cudaLaunchKernel_v7000'), (3, 'forward'), (4, 'main');
  CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
  INSERT INTO PROCESSES VALUES (281474993487872, 1, 'python'), (281475010265088, 2, 'python');
  CREATE TABLE RANKTAP_RANKS (globalPid INTEGER, rank INTEGER, local_rank INTEGER, world_size INTEGER, host TEXT);
  INSERT INTO RANKTAP_RANKS VALUES (281474993487872, 0, 0, 2, 'a'), (281475010265088, 1, 0, 2, 'b');
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
    gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
    registersPerThread INTEGER, graphNodeId INTEGER, graphId INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (200, 300, 0, 1, 7, 42, 281474993487872, 1, 1, 1, 2, 3, 128, 1, 1, 32, NULL, NULL),
    (250, 260, 1, 2, 9, 42, 281475010265088, 1, 1, 1, 2, 3, 128, 1, 1, 32, 5, 6);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,
    srcKind INTEGER, dstKind INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (310, 320, 0, 1, 7, 43, 281474993487872, 65536, 1, 0, 2);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER, memKind INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (330, 340, 0, 1, 7, 44, 281474993487872, 0, 512, 2);
  CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER,
    eventId INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (340, 350, 0, 1, 7, 45, 281474993487872, 3, 0);
  CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (360, 370, 0, 1, 7, 46, 281474993487872, 3);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
    nameId INTEGER, returnValue INTEGER);
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 150, 281474993487879, 42, 2, 0), (160, 170, 281474993487879, 44, 2, 0);
  CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER,
    address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);
  INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (120, 281474993487872, 0, 1, 4096, 512, 2, 0);
  CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
    globalTid INTEGER, domainId INTEGER, category INTEGER, color INTEGER);
  INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'lib', NULL, 281474993487872, 3, NULL, NULL),
    (90, 180, 59, NULL, 3, 281474993487879, 3, 1, 255), (96, NULL, 59, 'open', NULL, 281474993487879, 3, NULL, NULL);
  CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
  INSERT INTO PROFILER_OVERHEAD VALUES (10, 20, 281474993487879, 3);
  CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
  INSERT INTO ThreadNames VALUES (4, 0, 281474993487879);
  CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER, totalMemory INTEGER);
  INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 0, 85899345920);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1727390616000000000, '', '');
)";

std::string Sample() {
  sqlite3* database = nullptr;
  fuzz::Require(sqlite3_open(":memory:", &database) == SQLITE_OK);
  fuzz::Require(sqlite3_exec(database, kSample, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(database, "main", &size, 0);
  fuzz::Require(bytes != nullptr);
  std::string file(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return file;
}

// SQLite follows links, which keeps it from a memfd: a file of its own, gone with the process.
class ScratchFile {
 public:
  ScratchFile() : path_("/dev/shm/nsys_fuzz_XXXXXX"), file_(::mkstemp(path_.data())) {
    fuzz::Require(file_ >= 0);
  }
  ~ScratchFile() { ::unlink(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& Write(const std::string& bytes) {
    (void)!::ftruncate(file_, 0);
    fuzz::Require(::pwrite(file_, bytes.data(), bytes.size(), 0) ==
                  static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  std::string path_;
  int file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ScratchFile file;
  static const std::string sample = Sample();
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  std::string bytes = sample;
  if ((mode & 1) != 0) bytes.resize(1 + input.Take<uint16_t>() % bytes.size());
  // Within the first pages too: an edit anywhere seldom meets the schema.
  if ((mode & 2) != 0) {
    fuzz::Edit(&input, std::as_writable_bytes(
                           std::span(bytes).first(std::min<size_t>(bytes.size(), 4096))));
  } else {
    fuzz::Edit(&input, std::as_writable_bytes(std::span(bytes)));
  }
  (void)collector::ImportNsys(file.Write(bytes)).ok();
  return 0;
}
