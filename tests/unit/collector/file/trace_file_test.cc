// Files written, read, damaged and verified.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>

#include "collector/trace/load/trace_check.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/fault_seed.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;

// Three blocks of two frames, two writers, a name.
void WriteSmallTrace(const std::string& path) {
  TraceFileBuilder file(path);
  file.AddText(1, "gemm");
  for (int block = 0; block < 3; ++block) {
    const auto start = static_cast<uint64_t>(1'000'000 * (block + 1));
    file.AddEvents(1, MakeKernels(50, start));
    file.AddEvents(2, MakeKernels(30, start + 500'000));
    file.EndBlock();
  }
  file.Close();
}

std::vector<uint64_t> BlockOffsets(const std::string& path) {
  std::vector<uint64_t> offsets;
  auto reader = TraceReader::Open(path);
  Block block;
  while (reader->Next(&block)) offsets.push_back(block.offset);
  return offsets;
}

size_t CountEvents(const std::string& path) {
  const auto trace = LoadTrace(path);
  return trace.ok() ? trace->events : 0;
}

TEST(TraceFileTest, WhatIsWrittenIsRead) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "a.trace");
  const auto trace = LoadTrace(directory / "a.trace");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_TRUE(trace->closed);
  EXPECT_TRUE(trace->damage.empty());
  EXPECT_EQ(trace->events, 240u);
  ASSERT_EQ(trace->kernels.size(), 240u);
  EXPECT_TRUE(std::is_sorted(trace->kernels.start.begin(), trace->kernels.start.end()));
  EXPECT_EQ(trace->dictionary.String(trace->kernels.name[0]), "gemm");
  EXPECT_EQ(trace->ending.how(), v1::Ending::HOW_GOODBYE);
  const auto check = CheckRun(directory.path());
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->ok()) << check->traces[0].problems[0].what;
  EXPECT_EQ(check->traces[0].events, 240u);
}

// What a killed collector leaves: any length at all. Everything before the cut is read.
TEST(TraceFileTest, AFileCutAtAnyByteOfItsLastBlocksIsReadUpToThere) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "whole.trace");
  const std::string whole = ReadFile(directory / "whole.trace");
  const std::vector<uint64_t> offsets = BlockOffsets(directory / "whole.trace");
  ASSERT_GE(offsets.size(), 6u);
  const std::string path = directory / "cut.trace.part";
  // The second block of frames starts at offsets[2]; from there to the end, byte by byte.
  for (size_t size = offsets[2]; size < whole.size(); ++size) {
    WriteFile(path, whole.substr(0, size));
    size_t complete = 0;
    for (size_t i = 1; i < offsets.size(); ++i) complete += offsets[i] <= size ? 1 : 0;
    complete += whole.size() - sizeof(FileTrailer) <= size ? 1 : 0;
    auto reader = TraceReader::Open(path);
    ASSERT_TRUE(reader.ok()) << size;
    EXPECT_FALSE(reader->closed());
    size_t blocks = 0;
    Block block;
    while (reader->Next(&block)) ++blocks;
    ASSERT_EQ(blocks, complete) << "cut at " << size;
    // A cut right behind a block tears nothing.
    const bool at_border = size == whole.size() - sizeof(FileTrailer) ||
                           std::find(offsets.begin(), offsets.end(), size) != offsets.end();
    ASSERT_EQ(reader->damage().size(), at_border ? 0u : 1u) << "cut at " << size;
    if (!at_border) {
      ASSERT_EQ(reader->damage()[0].offset + reader->damage()[0].bytes, size);
    }
  }
}

TEST(TraceFileTest, VerifyNamesTheEndOfAFileThatWasNotClosed) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "a.trace");
  const std::string whole = ReadFile(directory / "a.trace");
  const uint64_t last_frames = BlockOffsets(directory / "a.trace")[3];
  WriteFile(directory / "a.trace", whole.substr(0, last_frames + 100));
  const auto check = CheckRun(directory / "a.trace");
  ASSERT_TRUE(check.ok());
  EXPECT_FALSE(check->ok());
  ASSERT_EQ(check->traces[0].problems.size(), 2u);
  EXPECT_EQ(check->traces[0].problems[0].offset, last_frames);
  EXPECT_THAT(check->traces[0].problems[0].what, HasSubstr("cut off in a block"));
}

TEST(TraceFileTest, OneFrameRemovedFailsVerifyByPosition) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddText(1, "gemm");
  file.AddEvents(1, MakeKernels(10, 1000));
  file.Skip(1, 10);
  file.AddEvents(1, MakeKernels(10, 50'000));
  file.EndBlock();
  file.Close();
  const auto check = CheckRun(directory.path());
  ASSERT_TRUE(check.ok());
  ASSERT_FALSE(check->ok());
  EXPECT_THAT(check->traces[0].problems[0].what,
              HasSubstr("writer 1: events 10 to 19 are missing"));
}

TEST(TraceFileTest, AMissingLastFrameFailsVerifyByTheAccounts) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddText(1, "gemm");
  file.AddEvents(1, MakeKernels(10, 1000));
  file.Skip(1, 10);  // never stored, but in the accounts
  file.EndBlock();
  file.Close();
  const auto check = CheckRun(directory.path());
  ASSERT_FALSE(check->ok());
  EXPECT_THAT(check->traces[0].problems[0].what, HasSubstr("missing at the end"));
}

TEST(TraceFileTest, AnEventWhoseNameIsNotThereFailsVerify) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddEvents(1, MakeKernels(10, 1000));
  file.EndBlock();
  file.Close();
  const auto check = CheckRun(directory.path());
  ASSERT_FALSE(check->ok());
  EXPECT_THAT(check->traces[0].problems[0].what, HasSubstr("dictionary entry 1"));
}

// One byte of each block changed: only that block is lost, and its offset is reported.
TEST(TraceFileTest, AChangedByteCostsItsBlockAndNoOther) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "whole.trace");
  const std::string whole = ReadFile(directory / "whole.trace");
  const std::vector<uint64_t> offsets = BlockOffsets(directory / "whole.trace");
  const std::string path = directory / "hurt.trace";
  for (size_t hurt = 0; hurt + 1 < offsets.size(); ++hurt) {
    for (const uint64_t at : {offsets[hurt] + 3, offsets[hurt] + sizeof(BlockHeader) + 5}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
      WriteFile(path, bytes);
      auto reader = TraceReader::Open(path);
      ASSERT_TRUE(reader.ok());
      EXPECT_TRUE(reader->closed());
      size_t blocks = 0;
      Block block;
      while (reader->Next(&block)) ++blocks;
      EXPECT_EQ(blocks, offsets.size() - 1) << "byte " << at;
      ASSERT_EQ(reader->damage().size(), 1u);
      EXPECT_EQ(reader->damage()[0].offset, offsets[hurt]);
      EXPECT_EQ(reader->damage()[0].bytes, offsets[hurt + 1] - offsets[hurt]);
      const auto check = CheckRun(path);
      ASSERT_TRUE(check.ok());
      EXPECT_FALSE(check->ok());
    }
  }
}

// Of a file of at least as many bytes as places are asked for (FAULT_COUNT).
TEST(TraceFileTest, AnyChangedByteIsNoticedAndCostsOneBlockAtMost) {
  const TemporaryDirectory directory;
  {
    TraceFileBuilder file(directory / "whole.trace");
    file.AddText(1, "gemm");
    constexpr uint32_t kBytesOfABlock = 135;
    const auto wanted = static_cast<uint32_t>(FaultCount(4096)) / kBytesOfABlock;
    for (uint32_t block = 0; block < wanted; ++block) {
      file.AddEvents(1, MakeKernels(40, 1'000'000 * (block + 1)));
      file.EndBlock();
    }
    file.Close();
  }
  const std::string whole = ReadFile(directory / "whole.trace");
  ASSERT_GE(whole.size(), static_cast<size_t>(FaultCount(4096)));
  const size_t blocks = BlockOffsets(directory / "whole.trace").size();
  const std::string path = directory / "hurt.trace";
  WriteFile(path, whole);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const auto put = [&](size_t at, char byte) {
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, static_cast<off_t>(at)), 1);
  };
  const auto places = std::min(whole.size(), static_cast<size_t>(FaultCount(4096)));
  std::mt19937 random(FaultSeed());
  for (size_t i = 0; i < places; ++i) {
    const size_t at = i * whole.size() / places;
    const char flip = static_cast<char>(1u << (random() % 8));
    put(at, static_cast<char>(whole[at] ^ flip));
    const auto check = CheckRun(path);
    EXPECT_TRUE(!check.ok() || !check->ok()) << "nobody noticed byte " << at;
    auto reader = TraceReader::Open(path);
    if (reader.ok()) {
      size_t read = 0;
      Block block;
      while (reader->Next(&block)) ++read;
      ASSERT_GE(read + 1, blocks) << "byte " << at;
      (void)LoadTrace(path);
    } else {
      ASSERT_LT(at, sizeof(FileHeader)) << reader.message();
    }
    put(at, whole[at]);
  }
  std::printf("%zu places of %zu bytes changed, each noticed, at most one of %zu blocks lost\n",
              places, whole.size(), blocks);
}

TEST(TraceFileTest, NamesOfADamagedBlockComeFromTheNextCheckpoint) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddText(1, "gemm");
  file.EndBlock();
  file.AddEvents(1, MakeKernels(10, 1000));
  file.EndBlock();
  file.Checkpoint();
  file.Close();
  std::string bytes = ReadFile(directory / "a.trace");
  bytes[BlockOffsets(directory / "a.trace")[1] + sizeof(BlockHeader) + 2] ^= 1;
  WriteFile(directory / "a.trace", bytes);
  const auto trace = LoadTrace(directory / "a.trace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->damage.size(), 1u);
  ASSERT_EQ(trace->kernels.size(), 10u);
  EXPECT_EQ(trace->dictionary.String(trace->kernels.name[0]), "gemm");
}

TEST(TraceFileTest, AnyByteOfTheFileMayBeWrongWithoutAReaderNoticingTooLate) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "whole.trace");
  const std::string whole = ReadFile(directory / "whole.trace");
  const std::string path = directory / "hurt.trace";
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    WriteFile(path, bytes);
    const auto trace = LoadTrace(path);
    ASSERT_TRUE(trace.ok()) << at << ": " << trace.message();
    // At most the frames of one block.
    EXPECT_GE(trace->events, 160u) << at;
    const auto check = CheckRun(path);
    ASSERT_TRUE(check.ok());
    EXPECT_FALSE(check->ok()) << "byte " << at << " is not covered by any check";
  }
}

TEST(TraceFileTest, AFrameWhosePayloadIsNoEventsIsReportedAndSkipped) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddText(1, "gemm");
  file.AddEvents(1, MakeKernels(10, 1000));
  file.Add({.type = proto::FrameType::kEvents, .writer = 1, .first_event = 10, .events = 5},
           "\x0a\x05hello");
  file.Skip(1, 5);
  file.AddEvents(1, MakeKernels(10, 50'000));
  file.EndBlock();
  file.Close();
  const auto trace = LoadTrace(directory / "a.trace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->kernels.size(), 20u);
  ASSERT_EQ(trace->damage.size(), 1u);
  EXPECT_THAT(trace->damage[0].what, HasSubstr("does not parse"));
  EXPECT_FALSE(CheckRun(directory.path())->ok());
}

TEST(TraceFileTest, WhatIsNoTraceIsRefusedByName) {
  const TemporaryDirectory directory;
  WriteFile(directory / "x.trace", std::string(10'000, 'x'));
  const auto trace = LoadTrace(directory / "x.trace");
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), HasSubstr("x.trace: not a ranktap trace"));
  EXPECT_THAT(LoadTrace(directory / "none.trace").message(), HasSubstr("No such file"));
  EXPECT_THAT(LoadTrace(directory.path()).message(), HasSubstr("not a file"));
}

TEST(TraceFileTest, AnEmptyFileOfACollectorThatWasKilledAtOnceIsDamageNotFailure) {
  const TemporaryDirectory directory;
  WriteFile(directory / "rank-00000.trace.part", "");
  const auto trace = LoadTrace(directory / "rank-00000.trace.part");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->damage.size(), 1u);
  EXPECT_EQ(CountEvents(directory / "rank-00000.trace.part"), 0u);
}

TEST(TraceFileTest, ANewerFormatIsRefusedWithAReason) {
  const TemporaryDirectory directory;
  WriteSmallTrace(directory / "a.trace");
  std::string bytes = ReadFile(directory / "a.trace");
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = kTraceVersion + 1;
  header.header_crc =
      proto::Crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, header_crc)));
  std::memcpy(bytes.data(), &header, sizeof(header));
  WriteFile(directory / "a.trace", bytes);
  EXPECT_THAT(LoadTrace(directory / "a.trace").message(), HasSubstr("newer than this ranktap"));
}

// A write that fails leaves no torn block behind, and the file goes on after it.
TEST(TraceFileTest, AFailedWriteIsCutOffAgain) {
  const TemporaryDirectory directory;
  TraceFileBuilder file(directory / "a.trace");
  file.AddText(1, "gemm");
  file.AddEvents(1, MakeKernels(10, 1000));
  file.EndBlock();
  const uint64_t before = file.writer().file_bytes();

  struct rlimit limit {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit saved = limit;
  limit.rlim_cur = before + 30;
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::vector<std::byte> block(1000);
  EXPECT_FALSE(file.writer().WriteFrames(block, {}));
  EXPECT_EQ(file.writer().error(), EFBIG);
  EXPECT_FALSE(file.writer().broken());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &saved), 0);

  EXPECT_EQ(ReadFile(directory / "a.trace").size(), before);
  file.AddEvents(1, MakeKernels(10, 50'000));
  file.EndBlock();
  file.Close();
  EXPECT_TRUE(CheckRun(directory.path())->ok());
}

}  // namespace
}  // namespace ranktap::collector
