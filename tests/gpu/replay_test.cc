// Recordings of CUPTI (recording.h), read by the agent's own record reader: those of real GPUs
// under tests/data/cupti, and one that the stand-in makes on the spot.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
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
};

bool Load(const std::string& path, Recording& recording) {
  std::ifstream file(path, std::ios::binary);
  char magic[8];
  if (!file.read(magic, 8) || std::memcmp(magic, kRecordingMagic, 8) != 0) return false;
  file.read(reinterpret_cast<char*>(&recording.version), 4);
  uint32_t head[2];
  while (file.read(reinterpret_cast<char*>(head), sizeof(head))) {
    std::string content(head[1], '\0');
    if (!file.read(content.data(), head[1])) return false;
    uint64_t word = 0;
    if (content.size() >= 8) std::memcpy(&word, content.data(), 8);
    switch (static_cast<EntryKind>(head[0])) {
      case EntryKind::kBuffer:
        recording.buffers.push_back(std::move(content));
        break;
      case EntryKind::kString:
        recording.strings[word] = content.substr(8);
        break;
      case EntryKind::kDropped:
        recording.dropped += word;
        break;
      case EntryKind::kCallback: {
        CallbackEntry entry;
        std::memcpy(&entry, content.data(), sizeof(entry));
        recording.launches.insert(entry.correlation);
        break;
      }
    }
  }
  return true;
}

// Points the record's name at our copy of the text.
void MendName(const char*& name, const Recording& recording) {
  const auto found = recording.strings.find(reinterpret_cast<uint64_t>(name));
  name = found == recording.strings.end() ? nullptr : found->second.c_str();
}

struct Replayed {
  uint64_t kernels = 0, unnamed = 0, unjoined = 0, unknown = 0, backwards = 0;
};

Replayed Replay(Recording& recording) {
  using NextRecord = int (*)(uint8_t*, size_t, Record**);
  const auto next = reinterpret_cast<NextRecord>(
      dlsym(dlopen("libcupti.so.13", RTLD_NOW), "cuptiActivityGetNextRecord"));
  Replayed replayed;
  if (next == nullptr) return replayed;
  static Segment segment;
  static Arena arena;
  static bool made = [] {
    const uint8_t session[16] = {};
    if (!segment.Create(32 << 20, session) || !ThreadStates::Create(segment) || !MapCapturePage()) {
      return false;
    }
    arena.Attach(segment, new std::atomic<uint64_t>[Arena::kTableSlots]());
    return true;
  }();
  if (!made) return replayed;
  ThreadState* writer = ThreadState::Current();
  RecordReader reader(recording.version, arena);
  for (std::string& buffer : recording.buffers) {
    Record* record = nullptr;
    while (next(reinterpret_cast<uint8_t*>(buffer.data()), buffer.size(), &record) == kSuccess) {
      if (record->kind == Kind::kConcurrentKernel) {
        auto* kernel = reinterpret_cast<KernelRecord*>(record);
        const char* name = kernel->name;
        MendName(name, recording);
        kernel->name = name;
        ++replayed.kernels;
        if (name == nullptr) ++replayed.unnamed;
        if (kernel->graph == 0 && !recording.launches.contains(kernel->correlation)) {
          ++replayed.unjoined;
        }
        if (kernel->end < kernel->start) ++replayed.backwards;
      } else if (record->kind == Kind::kMemory2) {
        auto* memory = reinterpret_cast<MemoryRecord*>(record);
        const char* name = memory->name;
        MendName(name, recording);
        memory->name = name;
      }
      if (record->kind != Kind::kDevice && !reader.Emit(*record, *writer)) ++replayed.unknown;
    }
  }
  return replayed;
}

void ExpectSound(const std::string& path) {
  Recording recording;
  ASSERT_TRUE(Load(path, recording)) << path;
  const Replayed replayed = Replay(recording);
  EXPECT_GT(replayed.kernels, 0u) << path;
  EXPECT_EQ(replayed.unnamed, 0u) << path;
  EXPECT_EQ(replayed.unjoined, 0u) << path << ": kernels without the call that launched them";
  EXPECT_EQ(replayed.unknown, 0u) << path;
  EXPECT_EQ(replayed.backwards, 0u) << path;
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

TEST(ReplayTest, RecordingsOfRealGpusAreReadWhole) {
  int found = 0;
  if (std::filesystem::exists(RANKTAP_RECORDINGS)) {
    for (const auto& entry : std::filesystem::directory_iterator(RANKTAP_RECORDINGS)) {
      if (entry.path().extension() != ".rec") continue;
      ++found;
      ExpectSound(entry.path());
    }
  }
  if (found == 0) GTEST_SKIP() << "no recordings of a real GPU in " RANKTAP_RECORDINGS;
}

}  // namespace
}  // namespace ranktap::gpu
