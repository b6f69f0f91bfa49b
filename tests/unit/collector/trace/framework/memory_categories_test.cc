// What a block of memory is called, by when it came and went.
#include "collector/trace/framework/memory_categories.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/trace/framework/memory_block.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

// Steps of 10: [0, 10), [10, 20), ..., each with its forward from 5 on.
Trace WithSteps(int steps) {
  Trace trace;
  v1::Dictionary names;
  uint32_t id = 0;
  for (const std::string_view text : {proto::kStepDomain, proto::kModuleDomain}) {
    auto* const entry = names.add_nvtx_domains();
    entry->set_id(++id);
    entry->set_text(std::string(text));
  }
  auto* const name = names.add_strings();
  name->set_id(1);
  name->set_text("Net");
  const std::string bytes = names.SerializeAsString();
  EXPECT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(bytes))));
  trace.writers.emplace_back();
  const auto add = [&trace](int64_t start, int64_t end, uint16_t domain) {
    trace.ranges.start.push_back(start);
    trace.ranges.end.push_back(end);
    trace.ranges.name.push_back(1);
    trace.ranges.domain.push_back(domain);
    trace.ranges.writer.push_back(0);
    trace.ranges.depth.push_back(0);
    trace.ranges.kind.push_back(0);
  };
  for (int64_t i = 0; i < steps; ++i) {
    add(10 * i, 10 * i + 10, 1);
    add(10 * i + 5, 10 * i + 8, 2);
  }
  return trace;
}

MemoryCategory CategoryOf(int64_t start, int64_t end) {
  std::vector<MemoryBlock> blocks(1);
  blocks[0].start = start;
  blocks[0].end = end;
  blocks[0].writer = 0;
  return Categorize(WithSteps(6), &blocks)[0];
}

TEST(MemoryCategories, ABatchIsAnInputAndWhatEachStepKeepsIsNone) {
  EXPECT_EQ(CategoryOf(22, 29), MemoryCategory::kInput);  // given back in its step
  EXPECT_EQ(CategoryOf(22, 33), MemoryCategory::kInput);  // as the next batch replaces it
  EXPECT_EQ(CategoryOf(22, kNeverFreed), MemoryCategory::kUnknown);
  EXPECT_EQ(CategoryOf(22, 47), MemoryCategory::kUnknown);
}

TEST(MemoryCategories, OneBatchForAllStepsAndThoseOfTheEndAreInputs) {
  EXPECT_EQ(CategoryOf(2, kNeverFreed), MemoryCategory::kInput);
  EXPECT_EQ(CategoryOf(52, kNeverFreed), MemoryCategory::kInput);
}

}  // namespace
}  // namespace ranktap::collector
