// Files that were made to cost a reader much: what verify and the loader take of memory.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "collector/trace/load/trace_check.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/sanitized.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

// As docs/trace-format.md states it.
constexpr uint64_t kVerifyBytes = 256u << 20, kVerifyTimes = 16;
constexpr uint64_t kReadBytes = 256u << 20, kReadTimes = 8192;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string FrameOf(const proto::FrameFields& fields, const std::string& payload) {
  const proto::FrameHeader header = proto::MakeFrameHeader(fields, Bytes(payload));
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
}

std::string Entry(uint32_t field, uint64_t id) {
  std::string bytes;
  protozero::pbf_writer dictionary(bytes);
  protozero::pbf_writer(dictionary, field).add_uint64(1, id);
  return bytes;
}

class HostileFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "NOT TESTED: a sanitizer's memory is not ours";
  }
  HostileFileTest()
      : writer_(FileDescriptor(::open(path().c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600)),
                compressor_) {
    const std::vector<uint8_t> id(16, 7);
    EXPECT_TRUE(writer_.WriteHeader(id, id, 1));
  }
  std::string path() const { return directory_ / "a.trace"; }
  void Frames(const std::string& frames, uint32_t count, uint64_t events = 0) {
    EXPECT_TRUE(writer_.WriteFrames(Bytes(frames), {.frames = count, .events = events}));
  }
  // What `read` takes beyond a process that does nothing, in bytes.
  static uint64_t PeakOf(const std::function<void()>& read) {
    const auto peak = [&](bool reads) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        if (reads) read();
        ::_exit(0);
      }
      int status = 0;
      rusage usage{};
      EXPECT_EQ(::wait4(pid, &status, 0, &usage), pid);
      EXPECT_EQ(status, 0);
      return static_cast<uint64_t>(usage.ru_maxrss) << 10;
    };
    (void)::malloc_trim(0);  // a child that reuses what we freed would seem to take nothing
    const uint64_t idle = peak(false);
    return std::max(peak(true), idle) - idle;
  }
  void ExpectReadWithinBounds() {
    EXPECT_TRUE(writer_.Finish());
    const uint64_t bytes = std::filesystem::file_size(path());
    const uint64_t verify = PeakOf([this] { (void)CheckTrace(path()).ok(); });
    const uint64_t load = PeakOf([this] { (void)LoadTrace(path()).ok(); });
    RecordProperty("file_bytes", std::to_string(bytes));
    std::printf(
        "%llu bytes: verify %llu KiB, load %llu KiB\n", static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(verify >> 10), static_cast<unsigned long long>(load >> 10));
    EXPECT_LE(verify, kVerifyBytes + kVerifyTimes * bytes);
    EXPECT_LE(load, kReadBytes + kReadTimes * bytes);
  }

  TemporaryDirectory directory_;
  BlockCompressor compressor_;
  TraceWriter writer_;
};

TEST_F(HostileFileTest, LargeIdsOfUnknownKindsCostTheirBytesAlone) {
  std::string dictionary;
  for (uint32_t field = 10; field < 8000; ++field) dictionary += Entry(field, kMaxEntryId - 1);
  Frames(FrameOf({.type = proto::FrameType::kDictionary}, dictionary), 1);
  ExpectReadWithinBounds();
}

TEST_F(HostileFileTest, TheLargestIdOfEachKindCostsNoRoomForThoseBelow) {
  std::string dictionary;
  for (uint32_t field = 1; field <= 9; ++field) dictionary += Entry(field, kMaxEntryId);
  Frames(FrameOf({.type = proto::FrameType::kDictionary}, dictionary), 1);
  ASSERT_TRUE(writer_.Finish());
  EXPECT_LE(PeakOf([this] { (void)LoadTrace(path()).ok(); }), 16u << 20);
}

TEST_F(HostileFileTest, MillionsOfEntriesInFewBytesAreNotIndexedOneByOne) {
  std::string dictionary;
  for (uint32_t id = 1; dictionary.size() < (6u << 20); ++id) dictionary += Entry(5, id);
  std::string checkpoint;
  protozero::pbf_writer(checkpoint).add_message(v1::Checkpoint::kDictionaryFieldNumber, dictionary);
  EXPECT_TRUE(writer_.WriteCheckpoint(checkpoint));
  ExpectReadWithinBounds();
}

TEST_F(HostileFileTest, ACheckpointOfEmptyMessagesIsNotBuilt) {
  std::string hello, checkpoint;
  for (int i = 0; i < (20 << 20); ++i) hello.append("\x5a\x00", 2);
  protozero::pbf_writer(checkpoint).add_message(v1::Checkpoint::kHelloFieldNumber, hello);
  EXPECT_TRUE(writer_.WriteCheckpoint(checkpoint));
  checkpoint.clear();
  for (int i = 0; i < (20 << 20); ++i) checkpoint.append("\x22\x00", 2);
  EXPECT_TRUE(writer_.WriteCheckpoint(checkpoint));
  ExpectReadWithinBounds();
}

TEST_F(HostileFileTest, AnIndexOfEmptyEntriesIsNotBuilt) {
  std::string index;
  for (int i = 0; i < (30 << 20); ++i) index.append("\x0a\x00", 2);
  BlockHeader header{.magic = kBlockMagic, .type = BlockType::kIndex, .codec = Codec::kZstd};
  const auto stored = compressor_.Compress(Bytes(index));
  header.stored_bytes = static_cast<uint32_t>(stored.bytes.size());
  header.raw_bytes = static_cast<uint32_t>(index.size());
  header.stored_crc = proto::Crc32c(stored.bytes);
  header.header_crc =
      proto::Crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(BlockHeader, header_crc)));
  std::ofstream file(path(), std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(reinterpret_cast<const char*>(stored.bytes.data()),
             static_cast<std::streamsize>(stored.bytes.size()));
  file.close();
  const uint64_t verify = PeakOf([this] { (void)CheckTrace(path()).ok(); });
  EXPECT_LE(verify, kVerifyBytes + kVerifyTimes * std::filesystem::file_size(path()));
}

TEST_F(HostileFileTest, EventsThatAreAllAlikeAreTakenUpToABoundOfTheFilesBytes) {
  proto::EventEncoder encoder;
  constexpr uint32_t kEvents = 8000;
  for (uint32_t i = 0; i < kEvents; ++i) {
    proto::KernelEvent kernel{};
    kernel.header = {static_cast<uint16_t>(proto::KernelEvent::kKind), sizeof(kernel), 0, 0};
    EXPECT_TRUE(encoder.Add(&kernel.header, sizeof(kernel)));
  }
  IdentityIds ids;
  std::string payload, frames;
  encoder.Encode(ids, payload);
  uint64_t next = 0;
  for (int block = 0; block < 2; ++block) {
    uint32_t count = 0;
    for (frames.clear(); count < 200; ++count, next += kEvents) {
      frames += FrameOf(
          {.type = proto::FrameType::kEvents, .writer = 1, .first_event = next, .events = kEvents},
          payload);
    }
    Frames(frames, count, uint64_t{kEvents} * count);
  }
  ExpectReadWithinBounds();
  const auto trace = LoadTrace(path());
  ASSERT_TRUE(trace.ok());
  EXPECT_GE(trace->events, uint64_t{1} << 20);
  EXPECT_LT(trace->events, next);
  EXPECT_FALSE(trace->damage.empty());
}

TEST_F(HostileFileTest, AFifoInPlaceOfRunJsonIsSaidAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((directory_ / "run.json").c_str(), 0600), 0);
  EXPECT_TRUE(writer_.Finish());
  const auto check = CheckRun(directory_.path());
  ASSERT_TRUE(check.ok()) << check.message();
  ASSERT_EQ(check->problems.size(), 1u);
  EXPECT_NE(check->problems[0].find("not a file"), std::string::npos);
}

}  // namespace
}  // namespace ranktap::collector
