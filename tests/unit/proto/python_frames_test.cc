// The reader against memory that is not Python's. Real interpreters: tests/python/test_stacks.py.
#include "proto/python_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace ranktap::proto {
namespace {

using ::testing::Each;
using ::testing::Le;

// Bytes at kBase; everything else is not mapped.
class MadeUpMemory final : public MemoryReader {
 public:
  static constexpr uint64_t kBase = 0x10000;
  explicit MadeUpMemory(size_t bytes) : bytes_(bytes) {}

  size_t ReadPieces(std::span<const Piece> pieces) override {
    size_t done = 0;
    for (const Piece& piece : pieces) {
      if (piece.address < kBase || piece.bytes > bytes_.size() ||
          piece.address - kBase > bytes_.size() - piece.bytes) {
        break;
      }
      std::memcpy(piece.to, &bytes_[piece.address - kBase], piece.bytes);
      ++done;
    }
    return done;
  }

  template <typename T>
  void Put(uint64_t address, T value) {
    std::memcpy(&bytes_[address - kBase], &value, sizeof(value));
  }

 private:
  std::vector<std::byte> bytes_;
};

constexpr uint64_t kBase = MadeUpMemory::kBase;

PythonPlace PlaceOf(uint32_t minor) {
  return {.runtime = kBase,
          .runtime_bytes = 4096,
          .code_type = kBase + 64,
          .version = 0x03000000 | minor << 16};
}

TEST(PythonFrames, WhateverTheMemoryHoldsAReadEndsWithinItsLimits) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    MadeUpMemory memory(1 << 16);
    // Half of the words are addresses in it, and many of them code objects by their type.
    for (uint64_t at = kBase; at + 8 <= kBase + (1 << 16); at += 8) {
      const uint64_t near = kBase + random() % (1 << 16) / 8 * 8;
      memory.Put(at, random() % 4 == 0 ? kBase + 64 : random() % 2 == 0 ? near : random());
    }
    for (const uint32_t minor : {9u, 10u, 11u, 12u}) {
      PythonLayout layout;
      ASSERT_EQ(FindPythonLayout(memory, PlaceOf(minor), &layout), "");
      PythonFrames frames(memory, PlaceOf(minor), layout);
      std::vector<PythonThread> threads;
      (void)frames.ReadThreads(&threads);
      ASSERT_LE(threads.size(), PythonFrames::kMostThreads);
      threads.resize(std::min<size_t>(threads.size(), 64));
      for (const PythonThread& thread : threads) {
        std::span<const PythonFrame> stack;
        (void)frames.ReadStack(thread, &stack);
        ASSERT_LE(stack.size(), PythonFrames::kMostFrames);
        PythonCodeText text;
        for (const PythonFrame& frame : stack) (void)frames.ReadCode(frame.code, &text);
      }
    }
  }
}

TEST(PythonFrames, AStackThatGoesInACircleIsCutAtItsInnermostFrames) {
  MadeUpMemory memory(1 << 16);
  PythonLayout layout;
  ASSERT_EQ(FindPythonLayout(memory, PlaceOf(11), &layout), "");
  const uint64_t frame = kBase + 0x2000, code = kBase + 0x3000;
  memory.Put(frame + layout.previous, frame);
  memory.Put(frame + layout.code, code);
  memory.Put(frame + layout.instruction, code + layout.instructions + 4);
  memory.Put(code + 8, kBase + 64);
  memory.Put(code + 16, uint64_t{10});
  PythonFrames frames(memory, PlaceOf(11), layout);
  std::span<const PythonFrame> stack;
  EXPECT_EQ(frames.ReadStack({.frame = frame}, &stack), StackRead::kTruncated);
  ASSERT_EQ(stack.size(), PythonFrames::kMostFrames);
  EXPECT_EQ(stack[0].offset, 4u);
  // Beyond its ten instructions of two bytes, or of another type, it is no frame.
  memory.Put(frame + layout.instruction, code + layout.instructions + 20);
  EXPECT_EQ(frames.ReadStack({.frame = frame}, &stack), StackRead::kTorn);
  memory.Put(frame + layout.instruction, code + layout.instructions);
  memory.Put(frame + layout.owner, uint8_t{3});
  EXPECT_EQ(frames.ReadStack({.frame = frame}, &stack), StackRead::kTorn);
  memory.Put(frame + layout.owner, uint8_t{1});
  memory.Put(code + 8, kBase + 72);
  EXPECT_EQ(frames.ReadStack({.frame = frame}, &stack), StackRead::kTorn);
}

TEST(PythonLayout, WhatIsNotKnownIsRefusedWithAReason) {
  MadeUpMemory memory(1 << 16);
  PythonLayout layout;
  EXPECT_EQ(FindPythonLayout(memory, PlaceOf(8), &layout), "it is older than 3.9");
  EXPECT_EQ(FindPythonLayout(memory, PlaceOf(16), &layout), "it is newer than 3.15");
  EXPECT_EQ(FindPythonLayout(memory, PlaceOf(13), &layout),
            "its runtime does not begin with the table of offsets");
  PythonPlace debug = PlaceOf(11);
  debug.counts_references = true;
  EXPECT_EQ(FindPythonLayout(memory, debug, &layout), "it is a debug build");
  memory.Put(kBase, std::array{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
  memory.Put(kBase + 8, uint64_t{0x030d00f0});
  memory.Put(kBase + 16, uint64_t{1});
  EXPECT_EQ(FindPythonLayout(memory, PlaceOf(13), &layout), "it is built without the GIL");
}

// 3.14.0 keeps 16 bits of a string's state for what 3.14.8 keeps two for.
TEST(PythonFrames, NamesOfBothKindsOf314AreRead) {
  for (const uint32_t state : {0x00190001u, 0xbeef0064u, 0x00000066u}) {
    SCOPED_TRACE(state);
    MadeUpMemory memory(1 << 16);
    PythonLayout layout;
    ASSERT_EQ(FindPythonLayout(memory, PlaceOf(12), &layout), "");
    layout.minor = 14;
    const uint64_t text = kBase + 0x2000;
    memory.Put(text + 16, int64_t{8});
    memory.Put(text + 32, state);
    memory.Put(text + 40, std::array{'t', 'r', 'a', 'i', 'n', '.', 'p', 'y'});
    PythonFrames frames(memory, PlaceOf(14), layout);
    PythonCodeText read;
    EXPECT_TRUE(frames.ReadNames({.filename = text, .name = text}, &read));
    EXPECT_EQ(read.file, "train.py");
    EXPECT_EQ(read.name, "train.py");
  }
}

// Tables that CPython made of "def f():\n x = 1\n\n\n y = [\n  2]\n return x", and dis' lines.
TEST(PythonLine, IsDisOwn) {
  using std::string_view_literals::operator""sv;
  const auto lines = [](uint16_t minor, std::string_view table, std::vector<uint32_t> offsets) {
    for (uint32_t& offset : offsets) offset = PythonLine(minor, table, 1, offset);
    return offsets;
  };
  EXPECT_EQ(lines(9, "\x00\x01\x04\x04\x02\xff\x04\x02"sv, {0, 2, 4, 6, 8, 10, 12}),
            (std::vector<uint32_t>{2, 2, 6, 5, 5, 7, 7}));
  EXPECT_EQ(lines(10, "\x04\x01\x02\x04\x04\xff\x04\x02"sv, {0, 2, 4, 6, 8, 10, 12, 14}),
            (std::vector<uint32_t>{2, 2, 6, 5, 5, 7, 7, 0}));
  EXPECT_EQ(lines(11,
                  "\x80\x00\xd8\x05\x06\x80\x11\xf0\x08\x00\x03\x04\xf0\x03\x01\x06\x05\x80\x11"
                  "\xe0\x08\t\x80\x18"sv,
                  {0, 2, 4, 6, 8, 10, 12, 14, 16}),
            (std::vector<uint32_t>{1, 2, 2, 6, 5, 5, 7, 7, 0}));
  // An instruction without a line: code 15, and -128 in 3.10.
  EXPECT_EQ(lines(11, "\xf8\xd8\x05\x06"sv, {0, 2}), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(lines(10, "\x02\x80\x02\x01"sv, {0, 2}), (std::vector<uint32_t>{0, 2}));
}

}  // namespace
}  // namespace ranktap::proto
