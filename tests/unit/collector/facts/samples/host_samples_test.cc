#include "collector/facts/samples/host_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

class HostSamplesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kMain = 40;

  HostSamplesTest() {
    v1::Dictionary names;
    v1::Text* const domain = names.add_nvtx_domains();
    domain->set_id(1);
    domain->set_text(std::string(proto::kSampleDomain));
    const std::string bytes = names.SerializeAsString();
    EXPECT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
    trace_.hello.mutable_process()->set_pid(kMain);
    AddMark(
        proto::kSampledCodesMark,
        "[1,\"/job/train.py\",\"main\"]\n[2,\"/v/site-packages/torch/nn/linear.py\",\"forward\"]\n"
        "[3,\"/usr/lib/python3.11/json/decoder.py\",\"decode\"]\nnot a line\n[9]\n");
    // main:97 -> forward:5 -> decode:7, and main:98 alone.
    AddMark(proto::kSampledFramesMark, "[1,0,1,97]\n[2,1,2,5]\n[3,2,3,7]\n[4,0,1,98]\n[5,5,1,1]\n");
  }

  void AddMark(std::string_view name, std::string_view lines) {
    Ranges& marks = trace_.marks;
    marks.start.push_back(0);
    marks.end.push_back(0);
    marks.name.push_back(trace_.dictionary.AppendString(name));
    marks.domain.push_back(1);
    marks.writer.push_back(0);
    marks.depth.push_back(0);
    marks.kind.push_back(0);
    const uint64_t head[2] = {0, lines.size()};
    std::string payload(sizeof(head), '\0');
    std::memcpy(payload.data(), head, sizeof(head));
    trace_.payloads.push_back(payload + std::string(lines));
    marks.inline_payload.PadTo(marks.size());
    marks.inline_payload.back() = static_cast<uint32_t>(trace_.payloads.size());
  }

  Trace trace_;
};

TEST_F(HostSamplesTest, ALineIsTheInnermostOfTheProgramWithTheCallOfAPackageBelowIt) {
  const HostSamples samples(trace_);
  EXPECT_EQ(samples.LineOf(3), (ProgramLine{.line = 1, .below = 2}));
  EXPECT_EQ(samples.Describe(samples.LineOf(3)),
            "train.py:97 (main), in torch/nn/linear.py (forward)");
  EXPECT_EQ(samples.Describe(samples.LineOf(4)), "train.py:98 (main)");
  EXPECT_EQ(samples.Describe(samples.LineOf(0)), "");
  EXPECT_EQ(samples.Describe(samples.LineOf(77)), "");
  // A frame that names itself as its caller ends the stack.
  EXPECT_EQ(samples.LineOf(5), (ProgramLine{.line = 5, .below = 0}));
}

TEST_F(HostSamplesTest, OnlyTheMainThreadsTimeCountsAndOnlyInTheIntervalAsked) {
  AddMark(proto::kSamplesMark,
          "[40,3,2,10,100,300,5]\n[41,4,1,10,100,900,5]\n[40,4,1,5,300,400,90]\n");
  const HostSamples samples(trace_);
  ASSERT_EQ(samples.all().size(), 3u);
  std::vector<std::pair<uint32_t, int64_t>> seen;
  samples.ForEachOfMain(250, 350, [&seen](const HostSample& sample, int64_t ns) {
    seen.emplace_back(sample.frame, ns);
  });
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(3u, 50), std::pair(4u, 50)));
}

TEST_F(HostSamplesTest, ALineIsNamedOnlyWhereItHasMoreThanHalfOfAllTheTime) {
  AddMark(proto::kSamplesMark, "[40,3,2,10,0,60,5]\n[40,4,1,5,60,100,9]\n");
  const HostSamples samples(trace_);
  LineTally whole, unseen, even;
  whole.Add(samples, 0, 100);
  EXPECT_EQ(whole.Most(), "train.py:97 (main), in torch/nn/linear.py (forward)");
  unseen.Add(samples, 0, 200);  // nobody looked after 100
  EXPECT_EQ(unseen.Most(), "");
  even.Add(samples, 24, 104);
  EXPECT_EQ(even.Most(), "");
}

// Looks at 10, 20 ... 100 all met line 98; a pass of 2 lies between two of them, eight times.
TEST_F(HostSamplesTest, WhatIsShorterThanTheTimeBetweenTwoLooksGetsNoLineOfItsNeighbours) {
  AddMark(proto::kSamplesMark, "[40,4,1,10,0,100,95]\n");
  const HostSamples samples(trace_);
  LineTally pass, rest;
  for (int64_t at = 14; at < 94; at += 10) {
    pass.Add(samples, at, at + 2);
    rest.Add(samples, at + 2, at + 10);
  }
  EXPECT_EQ(pass.Most(), "");
  EXPECT_EQ(rest.Most(), "train.py:98 (main)");
}

TEST_F(HostSamplesTest, TwoLooksNameNoLine) {
  AddMark(proto::kSamplesMark, "[40,4,1,3,0,30,25]\n");
  const HostSamples samples(trace_);
  LineTally two, three;
  two.Add(samples, 0, 20);
  three.Add(samples, 0, 30);
  EXPECT_EQ(two.Most(), "");
  EXPECT_EQ(three.Most(), "train.py:98 (main)");
}

}  // namespace
}  // namespace ranktap::collector
