// A trace of so many blocks that its index comes in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "collector/file/block_index.h"
#include "collector/file/trace_tail.h"
#include "collector/trace/load/trace_check.h"
#include "tests/fault_seed.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlocks = 2'600;  // of ten kernels
constexpr uint64_t kCheckpointEvery = 700;

std::string WriteLongTrace(const std::string& path) {
  TraceFileBuilder file(path);
  file.AddText(1, "gemm");
  for (uint64_t block = 0; block < kBlocks; ++block) {
    file.AddEvents(1, MakeKernels(10, 1'000'000 * (block + 1)));
    file.EndBlock();
    if (block % kCheckpointEvery == kCheckpointEvery - 1) file.Checkpoint();
  }
  file.Close();
  return path;
}

std::vector<Block> BlocksOf(const std::string& path) {
  auto reader = TraceReader::Open(path);
  EXPECT_TRUE(reader.ok());
  return reader.ok() ? reader->ListBlocks() : std::vector<Block>{};
}

std::string Problems(const std::string& path) {
  const Result<TraceCheck> check = CheckTrace(path);
  if (!check.ok()) return check.message();
  std::string problems;
  for (const Damage& problem : check->problems) problems += problem.what + "\n";
  return problems;
}

template <typename Struct>
std::string BytesOf(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <typename Struct>
void Sign(Struct* header, uint32_t* crc) {
  const size_t covered =
      static_cast<size_t>(reinterpret_cast<std::byte*>(crc) - reinterpret_cast<std::byte*>(header));
  *crc = proto::Crc32c(std::as_bytes(std::span(header, 1)).first(covered));
}

// The same file as a collector of before wrote it: one index of everything, at the end.
void WriteAsBefore(const std::string& path, const std::string& to) {
  const std::string whole = ReadFile(path);
  std::string bytes = whole.substr(0, sizeof(FileHeader));
  BlockIndex index;
  uint64_t sequence = 0;
  const auto append = [&](BlockHeader header, const std::string& stored) {
    header.sequence = sequence++;
    Sign(&header, &header.header_crc);
    if (header.type != BlockType::kIndex) index.Add(bytes.size(), header);
    bytes += BytesOf(header) + stored;
  };
  const std::vector<Block> blocks = BlocksOf(path);
  for (const Block& block : blocks) {
    if (block.header.type == BlockType::kIndex) continue;
    append(block.header,
           whole.substr(block.offset + sizeof(BlockHeader), block.header.stored_bytes));
  }
  FileTrailer trailer{};
  trailer.magic = kTrailerMagic;
  trailer.index_offset = bytes.size();
  BlockHeader last = blocks.back().header;
  const std::string entries = index.bytes();
  last.codec = Codec::kNone;
  last.raw_bytes = last.stored_bytes = static_cast<uint32_t>(entries.size());
  last.stored_crc = proto::Crc32c(std::as_bytes(std::span(entries)));
  append(last, entries);
  trailer.file_bytes = bytes.size() + sizeof(trailer);
  Sign(&trailer, &trailer.crc);
  WriteFile(to, bytes + BytesOf(trailer));
}

TEST(TraceIndexTest, EachPartListsTheBlocksSinceTheOneBefore) {
  const TemporaryDirectory directory;
  const std::string path = WriteLongTrace(directory / "a.trace");
  std::vector<uint64_t> listed;
  uint64_t blocks = 0;
  for (const Block& block : BlocksOf(path)) {
    ++blocks;
    if (block.header.type != BlockType::kIndex) continue;
    listed.push_back(blocks - 1);
    blocks = 0;
  }
  // A checkpoint at the start, three every 700, and the last one with the accounts' block.
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0], kBlocksOfAnIndex);
  EXPECT_EQ(listed[1], kBlocksOfAnIndex);
  EXPECT_EQ(listed[0] + listed[1] + listed[2], kBlocks + 1 + kBlocks / kCheckpointEvery + 2);
  EXPECT_EQ(Problems(path), "");
}

TEST(TraceIndexTest, AWriterHoldsNoMoreThanOnePart) {
  const TemporaryDirectory directory;
  BlockCompressor compressor;
  TraceWriter writer(
      FileDescriptor(::open((directory / "a").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600)),
      compressor);
  for (uint64_t i = 0; i < 20 * kBlocksOfAnIndex; ++i) {
    ASSERT_TRUE(writer.WriteCheckpoint("x"));
    ASSERT_LT(writer.MemoryBytes(), 64u << 10);
  }
}

TEST(TraceIndexTest, AMissingBlockFailsVerifyWhereverItWas) {
  const TemporaryDirectory directory;
  const std::string path = WriteLongTrace(directory / "a.trace");
  const std::string whole = ReadFile(path);
  const std::vector<Block> blocks = BlocksOf(path);
  std::mt19937_64 random(FaultSeed());
  for (int i = 0; i < 20; ++i) {
    const Block& out = blocks[random() % blocks.size()];
    const std::string without = directory / "without.trace";
    WriteFile(without, whole.substr(0, out.offset) + whole.substr(out.end()));
    EXPECT_THAT(Problems(without), HasSubstr("blocks are missing")) << "at " << out.offset;
  }
}

TEST(TraceIndexTest, AFileCutAnywhereIsGoneOnFromAndSealedWithEveryBlockBeforeTheCut) {
  const TemporaryDirectory directory;
  const std::string path = WriteLongTrace(directory / "a.trace");
  const std::string whole = ReadFile(path);
  const std::vector<Block> blocks = BlocksOf(path);
  std::mt19937_64 random(FaultSeed());
  const FileDescriptor folder(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 40; ++i) {
    const uint64_t size = blocks[1].offset + random() % (whole.size() - blocks[1].offset);
    uint64_t events = 0, last = 0;
    for (const Block& block : blocks) {
      if (block.end() > size) break;
      events += block.header.events;
      last = block.header.sequence;
    }
    SCOPED_TRACE("cut at " + std::to_string(size));
    const std::string part = directory / "b.trace.part";
    WriteFile(part, whole.substr(0, size));
    FileDescriptor file(::open(part.c_str(), O_RDWR));
    const Result<TraceTail> tail = ReadTail(file, part);
    ASSERT_TRUE(tail.ok()) << tail.message();
    EXPECT_EQ(tail->state.NextEvent(1), events);
    EXPECT_EQ(tail->next_sequence, last + 1);
    v1::Ending ending;
    ending.set_how(v1::Ending::HOW_ABANDONED);
    const Result<std::string> sealed = SealTrace(std::move(file), folder.get(), *tail, ending);
    ASSERT_TRUE(sealed.ok()) << sealed.message();
    EXPECT_EQ(Problems(*sealed), "");
    EXPECT_EQ(CheckTrace(*sealed)->events, events);
    std::filesystem::remove(*sealed);
  }
}

TEST(TraceIndexTest, AFileWithOneIndexOfEverythingIsReadAsBefore) {
  const TemporaryDirectory directory;
  const std::string path = WriteLongTrace(directory / "a.trace");
  const std::string before = directory / "before.trace";
  WriteAsBefore(path, before);
  EXPECT_EQ(Problems(before), "");
  EXPECT_EQ(CheckTrace(before)->events, CheckTrace(path)->events);
  const Result<TraceTail> tail = ReadTail(FileDescriptor(::open(before.c_str(), O_RDONLY)), before);
  ASSERT_TRUE(tail.ok()) << tail.message();
  EXPECT_EQ(tail->state.NextEvent(1), 10 * kBlocks);
}

}  // namespace
}  // namespace ranktap::collector
