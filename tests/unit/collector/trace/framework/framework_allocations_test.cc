#include "collector/trace/framework/framework_allocations.h"

#include <gtest/gtest.h>

#include "proto/framework_marks.h"
#include "proto/operator_payload.h"

namespace ranktap::collector {
namespace {

// torch.empty(2**60) is a mistake whose number the user needs to see.
TEST(FrameworkAllocations, WhatWasNotThereIsSaidAsItWasAskedFor) {
  constexpr uint64_t kAsked = uint64_t{1} << 60;
  Trace trace;
  trace.writers.resize(1);
  Ranges& marks = trace.marks;
  marks.start.push_back(1);
  marks.end.push_back(1);
  marks.name.push_back(trace.dictionary.AppendString(std::string(proto::kOutOfMemoryMark)));
  marks.domain.push_back(0);
  marks.writer.push_back(0);
  marks.depth.push_back(0);
  marks.kind.push_back(0);
  marks.payload_type.push_back(proto::kAllocationPayload);
  marks.payload.push_back(kAsked);
  TakeFrameworkAllocations(&trace);
  ASSERT_EQ(trace.hello.notes_size(), 1);
  EXPECT_EQ(trace.hello.notes(0), "out of memory: 1152921504606846976 bytes were asked for");
}

}  // namespace
}  // namespace ranktap::collector
