// Recordings of CUPTI (recording.h), read by the agent's own record reader: those under
// tests/data/cupti (of real GPUs, and stand-in-*.rec.gz), and one that the stand-in makes on the
// spot.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "agent/core/arena.h"
#include "agent/core/capture_state.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_records.h"
#include "agent/transport/dictionary.h"
#include "agent/transport/ring_reader.h"
#include "proto/decode.h"
#include "tests/gpu/recording.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI
using agent::Arena;
using agent::MapCapturePage;
using agent::Segment;
using agent::ThreadState;
using agent::ThreadStates;

struct Recording {
  uint32_t version = 0;
  std::vector<std::string> buffers;
  std::map<uint64_t, std::string> strings;
  std::set<uint32_t> launches;  // correlation ids of recorded calls
  uint64_t dropped = 0;
  std::vector<std::string> client_calls;
  bool cut = false;
};

// Reads a file with or without gzip.
class Bytes {
 public:
  explicit Bytes(const std::string& path) : file_(gzopen(path.c_str(), "rb")) {}
  ~Bytes() {
    if (file_ != nullptr) gzclose(file_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  bool Read(void* into, size_t size) {
    return file_ != nullptr &&
           gzread(file_, into, static_cast<unsigned>(size)) == static_cast<int>(size);
  }
  // The file ended where it was written to end.
  bool Whole() {
    int error = Z_OK;
    gzerror(file_, &error);
    return gzeof(file_) != 0 && error == Z_OK;
  }

 private:
  gzFile file_;
};

void Add(EntryKind kind, std::string content, Recording& recording) {
  uint64_t word = 0;
  if (content.size() >= 8) std::memcpy(&word, content.data(), 8);
  switch (kind) {
    case EntryKind::kBuffer:
      recording.buffers.push_back(std::move(content));
      break;
    case EntryKind::kString:
      recording.strings[word] = content.substr(8);
      break;
    case EntryKind::kDropped:
      recording.dropped += word;
      break;
    case EntryKind::kClientCall:
      recording.client_calls.push_back(content.substr(8));
      break;
    case EntryKind::kCut:
      recording.cut = true;
      break;
    case EntryKind::kCallback: {
      CallbackEntry entry;
      std::memcpy(&entry, content.data(), sizeof(entry));
      recording.launches.insert(entry.correlation);
    }
  }
}

bool Load(const std::string& path, Recording& recording) {
  Bytes file(path);
  char magic[8];
  if (!file.Read(magic, 8) || std::memcmp(magic, kRecordingMagic, 8) != 0) return false;
  if (!file.Read(&recording.version, 4)) return false;
  uint32_t head[2];
  while (file.Read(head, sizeof(head))) {
    std::string content(head[1], '\0');
    if (!file.Read(content.data(), head[1])) return false;
    Add(static_cast<EntryKind>(head[0]), std::move(content), recording);
  }
  return file.Whole();
}

// Points the record's name at our copy of the text.
void MendName(const char*& name, const Recording& recording) {
  const auto found = recording.strings.find(reinterpret_cast<uint64_t>(name));
  name = found == recording.strings.end() ? nullptr : found->second.c_str();
}

// The id of the call that an API record tells of: the program's own profiler has these where we
// have callbacks. Offset as in CUpti_ActivityAPI.
uint32_t CallOf(const Record& record) {
  uint32_t correlation = 0;
  std::memcpy(&correlation, reinterpret_cast<const uint8_t*>(&record) + 32, sizeof(correlation));
  return correlation;
}

bool IsCall(const Record& record) {
  return record.kind == Kind::kRuntime || record.kind == Kind::kDriver;
}

template <typename Visit>
void ForEachRecord(Recording& recording, Visit&& visit) {
  using NextRecord = int (*)(uint8_t*, size_t, Record**);
  static const auto next = reinterpret_cast<NextRecord>(
      dlsym(dlopen("libcupti.so.13", RTLD_NOW), "cuptiActivityGetNextRecord"));
  ASSERT_NE(next, nullptr);
  for (std::string& buffer : recording.buffers) {
    Record* record = nullptr;
    while (next(reinterpret_cast<uint8_t*>(buffer.data()), buffer.size(), &record) == kSuccess) {
      visit(*record);
    }
  }
}

struct Replayed {
  uint64_t kernels = 0, unnamed = 0, unjoined = 0, unknown = 0, backwards = 0;
};

Arena* TheArena() {
  static Segment segment;
  static Arena arena;
  static const bool made = [] {
    const uint8_t session[16] = {};
    if (!segment.Create(32 << 20, session) || !ThreadStates::Create(segment) || !MapCapturePage()) {
      return false;
    }
    arena.Attach(segment, new std::atomic<uint64_t>[Arena::kTableSlots]());
    return true;
  }();
  return made ? &arena : nullptr;
}

void MendNames(Record& record, const Recording& recording) {
  const char* name = nullptr;
  if (record.kind == Kind::kConcurrentKernel) {
    auto& kernel = reinterpret_cast<KernelRecord&>(record);
    name = kernel.name;
    MendName(name, recording);
    kernel.name = name;
  } else if (record.kind == Kind::kMemory2) {
    auto& memory = reinterpret_cast<MemoryRecord&>(record);
    name = memory.name;
    MendName(name, recording);
    memory.name = name;
  }
}

void Count(const KernelRecord& kernel, const Recording& recording, Replayed& replayed) {
  ++replayed.kernels;
  if (kernel.name == nullptr) ++replayed.unnamed;
  if (kernel.graph == 0 && !recording.launches.contains(kernel.correlation)) ++replayed.unjoined;
  if (kernel.end < kernel.start) ++replayed.backwards;
}

Replayed Replay(Recording& recording) {
  Replayed replayed;
  Arena* const arena = TheArena();
  if (arena == nullptr) return replayed;
  ForEachRecord(recording, [&](const Record& record) {
    if (IsCall(record)) recording.launches.insert(CallOf(record));
  });
  ThreadState* writer = ThreadState::Current();
  RecordReader reader(recording.version, *arena);
  ForEachRecord(recording, [&](Record& record) {
    MendNames(record, recording);
    if (record.kind == Kind::kConcurrentKernel) {
      Count(reinterpret_cast<const KernelRecord&>(record), recording, replayed);
    }
    if (record.kind != Kind::kDevice && !reader.Emit(record, *writer)) ++replayed.unknown;
  });
  return replayed;
}

void ExpectSound(const std::string& path) {
  Recording recording;
  ASSERT_TRUE(Load(path, recording)) << path;
  const Replayed replayed = Replay(recording);
  EXPECT_GT(replayed.kernels, 0u) << path;
  EXPECT_EQ(replayed.unnamed, 0u) << path;
  EXPECT_EQ(replayed.backwards, 0u) << path;
  // The recorder ran out of room for calls.
  if (!recording.cut) {
    EXPECT_EQ(replayed.unjoined, 0u) << path << ": kernels without the call that launched them";
  }
  // A client asks for kinds that are none of ours.
  if (recording.client_calls.empty()) {
    EXPECT_EQ(replayed.unknown, 0u) << path;
  }
}

TEST(ReplayTest, ARecordingOfTheStandInReadsAsItWasMade) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("cupti-" + std::to_string(getpid()) + ".rec");
  const std::string command = "CUPTI_RECORDING=" + path +
                              " CUDA_INJECTION64_PATH=" RANKTAP_RECORDER " " RANKTAP_WORKLOAD
                              " 200 >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  ExpectSound(path);
  std::filesystem::remove(path);
}

TEST(ReplayTest, TheRecorderAndTheFloorOpenTheCuptiThatTheyAreTold) {
  const std::string base =
      std::filesystem::temp_directory_path() / ("told-" + std::to_string(getpid()));
  const auto start = [&](const std::string& environment, const std::string& library) {
    const std::string command = environment + " CUDA_INJECTION64_PATH=" + library +
                                " " RANKTAP_WORKLOAD " 5 >/dev/null 2>&1";
    return std::system(command.c_str());
  };
  for (const bool exists : {true, false}) {
    const std::string told =
        exists ? "" : "RANKTAP_CUPTI=" + base + "/there-is-none/libcupti.so.13 ";
    const std::string sign = base + ".sign", path = base + ".rec";
    ASSERT_EQ(start(told + "CUPTI_RECORDING=" + path, RANKTAP_RECORDER), 0);
    ASSERT_EQ(start(told + "CUPTI_FLOOR_SIGN=" + sign, RANKTAP_FLOOR), 0);
    Recording recording;
    EXPECT_EQ(Load(path, recording), exists);
    EXPECT_EQ(std::filesystem::exists(sign), exists);
    std::filesystem::remove(path);
    std::filesystem::remove(sign);
  }
}

TEST(ReplayTest, RecordingsOnFileAreReadWholeCompressedAsTheyCame) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RANKTAP_RECORDINGS)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".rec") && !name.ends_with(".rec.gz")) continue;
    ++found;
    ExpectSound(entry.path());
  }
  EXPECT_GE(found, 2) << "in " RANKTAP_RECORDINGS;
}

TEST(ReplayTest, ARecordingWithAClientHasItsCallsInOrderAndTheKernelsOfBoth) {
  Recording recording;
  ASSERT_TRUE(Load(RANKTAP_RECORDINGS "/stand-in-profiler.rec.gz", recording));
  const std::vector<std::string>& calls = recording.client_calls;
  ASSERT_GE(calls.size(), 3u);
  EXPECT_EQ(calls.front(), "cuptiSubscribe() = 0");
  EXPECT_EQ(calls.back(), "cuptiUnsubscribe() = 0");
  EXPECT_THAT(calls, testing::Contains("cuptiActivityEnable(10) = 0"));
  // 20 before its session, which are ours, and 20 in it; none of after.
  EXPECT_EQ(Replay(recording).kernels, 40u);
}

TEST(ReplayTest, ATornFileIsRefusedAndNotHalfRead) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("torn-" + std::to_string(getpid()) + ".rec.gz");
  const std::filesystem::path whole = RANKTAP_RECORDINGS "/stand-in-profiler.rec.gz";
  std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(path, std::filesystem::file_size(whole) / 2);
  Recording recording;
  EXPECT_FALSE(Load(path, recording));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ranktap::gpu
