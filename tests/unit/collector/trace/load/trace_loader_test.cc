// Traces that are loaded on several threads, whole and damaged, beside the same bytes loaded block
// by block.
#include "collector/trace/load/trace_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "collector/trace/load/block_pipeline.h"
#include "collector/trace/processors.h"
#include "collector/trace/table_columns.h"
#include "tests/bench/training_trace.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kEvents = 300'000;  // enough for several threads

template <typename Struct>
std::string BytesOf(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// What the test changes of a block: its frames, and whether its header tells how many events are in
// it. A file whose headers do not is taken for a small one.
using Edit = std::function<void(size_t block, std::string* frames)>;

class ManyBlocks : public testing::Test {
 protected:
  ManyBlocks() { const bench::TrainingTrace written(directory_ / "whole.trace", kEvents); }

  // The file again, its blocks uncompressed and changed by `edit`.
  std::string Rewritten(const char* name, bool tells_events, const Edit& edit) {
    Result<TraceReader> reader = TraceReader::Open(directory_ / "whole.trace");
    std::string bytes = ReadFile(directory_ / "whole.trace").substr(0, sizeof(FileHeader));
    Block block;
    for (size_t i = 0; reader->Next(&block); ++i) {
      std::string raw(reinterpret_cast<const char*>(block.raw.data()), block.raw.size());
      if (block.header.type == BlockType::kFrames) edit(i, &raw);
      BlockHeader header = block.header;
      header.codec = Codec::kNone;
      header.raw_bytes = header.stored_bytes = static_cast<uint32_t>(raw.size());
      header.stored_crc = proto::Crc32c(std::as_bytes(std::span(raw)));
      if (!tells_events) header.events = 0;
      const auto head = std::as_bytes(std::span(&header, 1));
      header.header_crc = proto::Crc32c(head.first(offsetof(BlockHeader, header_crc)));
      bytes += BytesOf(header) + raw;
    }
    WriteFile(directory_ / name, bytes);
    return directory_ / name;
  }

  void ExpectLoadedAsInTurn(const Edit& edit, size_t damages,
                            const std::function<void(std::string*)>& hurt = {}) {
    const std::string path = Rewritten("at_once.trace", true, edit);
    const std::string in_turn = Rewritten("in_turn.trace", false, edit);
    for (const std::string& file : {path, in_turn}) {
      std::string bytes = ReadFile(file);
      if (hurt) hurt(&bytes);
      WriteFile(file, bytes);
    }
    Result<Trace> got = LoadTrace(path), expected = LoadTrace(in_turn);
    ASSERT_TRUE(got.ok() && expected.ok());
    EXPECT_EQ(got->events, expected->events);
    EXPECT_EQ(got->lanes, expected->lanes);
    EXPECT_EQ(got->first_ns, expected->first_ns);
    EXPECT_EQ(got->last_ns, expected->last_ns);
    EXPECT_EQ(got->unmatched_pops, expected->unmatched_pops);
    EXPECT_EQ(Columns(&*got), Columns(&*expected));
    ASSERT_EQ(got->damage.size(), damages);
    ASSERT_EQ(expected->damage.size(), damages);
    for (size_t i = 0; i < damages; ++i) {
      EXPECT_EQ(got->damage[i].offset, expected->damage[i].offset);
      EXPECT_EQ(got->damage[i].what, expected->damage[i].what);
    }
  }

  static std::vector<std::string> Columns(Trace* trace) {
    std::vector<std::string> columns;
    ForEachTable(*trace, [&columns](auto& table) {
      ForEachColumnOf(table, [&columns](auto& column) {
        std::string& bytes = columns.emplace_back();
        for (const auto value : column) {
          bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
        }
      });
    });
    return columns;
  }

  TemporaryDirectory directory_;
};

// The last byte of the frame's events becomes one that another must follow.
void CutOffTheLastNumber(uint32_t writer, std::string* frames) {
  for (size_t at = 0; at < frames->size();) {
    const auto frame = proto::DecodeFrame(std::as_bytes(std::span(*frames).subspan(at)));
    ASSERT_EQ(frame.status, proto::FrameStatus::kComplete);
    if (frame.header.writer == writer && frame.header.type == proto::FrameType::kEvents) {
      std::string payload = frames->substr(at + sizeof(frame.header), frame.payload.size());
      payload.back() = static_cast<char>(payload.back() | 0x80);
      proto::FrameHeader header = frame.header;
      header.payload_crc = proto::Crc32c(std::as_bytes(std::span(payload)));
      const auto head = std::as_bytes(std::span(&header, 1));
      header.header_crc = proto::Crc32c(head.first(offsetof(proto::FrameHeader, header_crc)));
      frames->replace(at, frame.consumed, BytesOf(header) + payload);
    }
    at += frame.consumed;
  }
}

constexpr uint32_t kHost = 1, kDevice = 2;  // writers of a TrainingTrace

TEST_F(ManyBlocks, AreLoadedAtOnceAsOneAfterTheOther) {
  ExpectLoadedAsInTurn([](size_t, std::string*) {}, 0);
}

TEST_F(ManyBlocks, AreTheSameInTheMemoryOfAnotherTrace) {
  const std::string path = directory_ / "whole.trace";
  Result<Trace> expected = LoadTrace(path);
  SpareColumns spare;
  Column<uint32_t> small, large;
  small.Grow(1'000), large.Grow(2'000'000);
  const uint32_t* const memory = large.data();
  spare.Give(std::move(small)), spare.Give(std::move(large));
  Result<Trace> got = LoadTrace(path, &spare);
  ASSERT_TRUE(got.ok() && expected.ok());
  EXPECT_EQ(Columns(&*got), Columns(&*expected));
  EXPECT_NE(spare.Take().data(), memory) << "the loader took it";
}

TEST_F(ManyBlocks, AMalformedFrameOfEitherHalfLeavesNothingOfItselfAndAllOthers) {
  for (const uint32_t writer : {kHost, kDevice}) {
    ExpectLoadedAsInTurn(
        [writer](size_t block, std::string* frames) {
          if (block == 7 || block == 9) CutOffTheLastNumber(writer, frames);
        },
        2);
  }
}

TEST_F(ManyBlocks, ABlockThatIsDamagedIsLeftOutAlone) {
  ExpectLoadedAsInTurn(
      [](size_t, std::string*) {}, 2,
      [](std::string* bytes) {
        (*bytes)[bytes->size() / 2] ^= 1;
        bytes->resize(bytes->size() - 100);  // as a writer leaves it that was killed
      });
}

TEST_F(ManyBlocks, OneThatIsMissingIsReported) {
  ExpectLoadedAsInTurn([](size_t, std::string*) {}, 1,
                       [](std::string* bytes) {
                         const size_t second = bytes->find("RTBK", bytes->size() / 2);
                         const size_t third = bytes->find("RTBK", second + 1);
                         bytes->erase(second, third - second);
                       });
}

class Takers : public ManyBlocks {
 protected:
  void SetUp() override {
    blocks_ = TraceReader::Open(directory_ / "whole.trace")->ListBlocks();
    ASSERT_GT(blocks_.size(), 10u);
  }
  bool Run(BlockPipeline::Take host, BlockPipeline::Take device) {
    BlockPipeline pipeline(directory_ / "whole.trace", blocks_, std::move(host), std::move(device));
    const bool ok = pipeline.Run();
    taken_ = pipeline.taken();
    return ok;
  }

  std::vector<Block> blocks_;
  size_t taken_ = 0;
};

TEST_F(Takers, ComeToEachBlockInItsOrderTheHostsFirst) {
  std::vector<uint64_t> of_device;
  std::atomic<size_t> of_host = 0;
  EXPECT_TRUE(
      Run([&](BlockAhead* ahead) { return ahead->block.offset == blocks_[of_host++].offset; },
          [&](BlockAhead* ahead) {
            of_device.push_back(ahead->block.offset);
            return of_host >= of_device.size();
          }));
  EXPECT_EQ(taken_, blocks_.size());
  ASSERT_EQ(of_device.size(), blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) EXPECT_EQ(of_device[i], blocks_[i].offset);
}

TEST_F(Takers, AreAtDifferentBlocksAtOnce) {
  if (ProcessorCount() < 2) GTEST_SKIP() << "one processor";
  std::atomic<size_t> of_host = 0;
  const auto device = [&of_host](BlockAhead*) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (of_host < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return of_host >= 2;  // the host's is at the next block while this one waits
  };
  EXPECT_TRUE(Run([&of_host](BlockAhead*) { return ++of_host > 0; }, device));
}

TEST_F(Takers, EndWhereOneSaysSo) {
  size_t of_host = 0;
  EXPECT_FALSE(
      Run([&of_host](BlockAhead*) { return ++of_host < 5; }, [](BlockAhead*) { return true; }));
  EXPECT_EQ(of_host, 5u);
  EXPECT_LE(taken_, 4u);
}

// For want of memory: the other threads do not wait for what is not taken any more.
TEST_F(Takers, EndWhereOneThrows) {
  size_t of_host = 0;
  const auto host = [&of_host](BlockAhead*) {
    if (++of_host == 5) throw std::bad_alloc();
    return true;
  };
  EXPECT_THROW((void)Run(host, [](BlockAhead*) { return true; }), std::bad_alloc);
}

}  // namespace
}  // namespace ranktap::collector
