// The functions that our Python sources get, called as Python calls them.
#include "agent/sources/torch/torch_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/sources/torch/python_injection.h"
#include "agent/sources/torch/torch_labels.h"
#include "agent/sources/torch/torch_modules.h"
#include "proto/framework_marks.h"
#include "tests/unit/agent/core/announced.h"
#include "tests/unit/agent/core/rings.h"
#include "tests/unit/agent/sources/torch/made_up_python.h"

namespace ranktap::agent {
namespace {

using proto::EntryKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint32_t> g_told_ranks;

// Events since the last look, each kind in its order.
struct Recorded {
  std::vector<proto::RangePushEvent> pushes;
  std::vector<proto::RangePopEvent> pops;
  std::vector<proto::RangeStartEvent> starts;
  std::vector<proto::RangeEndEvent> ends;
  std::vector<proto::MarkEvent> marks;

  template <typename Event>
  bool Take(const proto::Section<Event>& section) {
    if constexpr (std::is_same_v<Event, proto::RangePushEvent>) return DecodeRows(section, &pushes);
    if constexpr (std::is_same_v<Event, proto::RangePopEvent>) return DecodeRows(section, &pops);
    if constexpr (std::is_same_v<Event, proto::RangeStartEvent>) {
      return DecodeRows(section, &starts);
    }
    if constexpr (std::is_same_v<Event, proto::RangeEndEvent>) return DecodeRows(section, &ends);
    if constexpr (std::is_same_v<Event, proto::MarkEvent>) return DecodeRows(section, &marks);
    return true;
  }
  size_t size() const {
    return pushes.size() + pops.size() + starts.size() + ends.size() + marks.size();
  }
};

class TorchFunctionsTest : public Rings {
 protected:
  void SetUp() override {
    g_agent.names = arena_;
    InstallPythonInjection({.start = [] { return true; },
                            .refresh_rank = [] {},
                            .tell_rank =
                                [](uint32_t rank, uint32_t size) {
                                  g_told_ranks = {rank, size};
                                }});
    MadeUpPython::Install();
    ASSERT_TRUE(MapCapturePage());
    SetCapture(kCaptureFramework);
    functions_ = MakeTorchFunctions();
    ASSERT_NE(functions_, nullptr);
    (void)TakeRecorded();
    (void)TakeAnnounced();
  }
  void TearDown() override { ClearCapture(kCaptureFramework); }

  PyObject* Call(const std::string& name, std::initializer_list<PyObject*> arguments = {}) {
    PyObject* const result = MadeUpPython::Call(*functions_->items.at(name)->method, arguments);
    EXPECT_FALSE(MadeUpPython::HasError()) << name;
    return result;
  }
  uint64_t Ask(const std::string& name, std::initializer_list<PyObject*> arguments = {}) {
    return Call(name, arguments)->number;
  }
  static PyObject* Number(uint64_t number) { return MadeUpPython::Number(number); }
  static PyObject* Text(const char* text) { return MadeUpPython::Text(text); }

  Recorded TakeRecorded() {
    Recorded recorded;
    proto::EventEncoder encoder;
    segment_->Grow();
    reader_->Discover();
    while (const auto batch = reader_->TakeBatch(1, encoder)) {
      std::string payload;
      encoder.Encode(ids_, payload);
      EXPECT_TRUE(proto::DecodeEvents(std::as_bytes(std::span(payload)), batch->events,
                                      [&]<typename Event>(const proto::Section<Event>& section) {
                                        return recorded.Take(section);
                                      }));
      reader_->Acknowledge(batch->slot, batch->first_event + batch->events);
    }
    return recorded;
  }
  uint32_t IdOf(uint64_t name) {
    return ids_.IdOf(EntryKind::kString, static_cast<proto::ArenaRef>(name));
  }

  PyObject* functions_ = nullptr;
  Dictionary ids_{*segment_, *arena_};
};

TEST_F(TorchFunctionsTest, OurMarksAreThereBesideTheFunctions) {
  EXPECT_EQ(functions_->items.at("STEP_DOMAIN")->text, proto::kStepDomain);
}

TEST_F(TorchFunctionsTest, ANameHasOneNumberAndNoneWhereTheAgentIsGone) {
  const uint64_t forward = Ask("name", {Text("forward")});
  EXPECT_NE(forward, 0u);
  EXPECT_EQ(Ask("name", {Text("forward")}), forward);
  EXPECT_NE(Ask("name", {Text("backward")}), forward);
  GoQuiet();
  EXPECT_EQ(Ask("name", {Text("forward")}), 0u);
}

TEST_F(TorchFunctionsTest, APushAndAPopAreARangeWithItsPayload) {
  const uint64_t domain = Ask("domain", {Text("steps")});
  const uint64_t name = Ask("name", {Text("step")});
  Call("push", {Number(domain), Number(name), Number(7)});
  Call("pop", {Number(domain)});
  const Recorded recorded = TakeRecorded();
  ASSERT_EQ(recorded.pushes.size(), 1u);
  EXPECT_EQ(recorded.pushes[0].nvtx.name, IdOf(name));
  EXPECT_EQ(recorded.pushes[0].nvtx.payload, 7u);
  EXPECT_EQ(recorded.pops.size(), 1u);
  EXPECT_EQ(recorded.size(), 2u);
}

TEST_F(TorchFunctionsTest, ARangeThatAnyThreadMayCloseIsClosedByItsNumber) {
  const uint64_t range = Ask("open", {Number(0), Number(Ask("name", {Text("load")})), Number(3)});
  Call("close", {Number(range)});
  const Recorded recorded = TakeRecorded();
  ASSERT_EQ(recorded.starts.size(), 1u);
  EXPECT_EQ(recorded.starts[0].range, range);
  EXPECT_EQ(recorded.starts[0].nvtx.payload, 3u);
  ASSERT_EQ(recorded.ends.size(), 1u);
  EXPECT_EQ(recorded.ends[0].range, range);
}

TEST_F(TorchFunctionsTest, BelowFullNothingIsRecorded) {
  const uint64_t name = Ask("name", {Text("step")});
  EXPECT_EQ(Ask("capturing"), 1u);
  ClearCapture(kCaptureFramework);
  EXPECT_EQ(Ask("capturing"), 0u);
  Call("push", {Number(0), Number(name)});
  Call("pop", {Number(0)});
  Call("enter", {Number(1), Number(name)});
  EXPECT_EQ(Ask("depth"), 0u);
  Call("mark", {Number(0), Number(name), MadeUpPython::Text("x", PyObject::Kind::kBytes)});
  EXPECT_EQ(TakeRecorded().size(), 0u);
}

TEST_F(TorchFunctionsTest, TheOuterOneOfTwoModulesIsTheRoot) {
  const uint64_t outer = Ask("name", {Text("Model")}), inner = Ask("name", {Text("Linear")});
  EXPECT_TRUE(IsAtRoot());
  Call("enter", {Number(1), Number(outer)});
  Call("enter", {Number(2), Number(inner)});
  EXPECT_EQ(Ask("depth"), 2u);
  EXPECT_FALSE(IsAtRoot());
  EXPECT_EQ(Ask("exit", {Number(2)}), 0u);
  EXPECT_EQ(Ask("exit", {Number(1)}), 1u);
  EXPECT_EQ(Ask("exit", {Number(1)}), 0u) << "nothing is open";
  const Recorded recorded = TakeRecorded();
  ASSERT_EQ(recorded.pushes.size(), 2u);
  EXPECT_EQ(recorded.pushes[0].nvtx.name, IdOf(outer));
  EXPECT_EQ(recorded.pushes[1].nvtx.name, IdOf(inner));
  EXPECT_EQ(recorded.pops.size(), 2u);
}

// Labels of one thread, each inside of the one before.
class NestedLabels {
 public:
  void Begin(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t label = open_++;
      BeginLabel(&labels_[label], ("label " + std::to_string(label)).c_str());
    }
  }
  void End() {
    while (open_ > 0) EndLabel(&labels_[--open_]);
  }

 private:
  std::array<char, 1100> labels_{};
  size_t open_ = 0;
};

TEST_F(TorchFunctionsTest, ALabelIsARangeAlsoWhereTheListOfOpenOnesIsFull) {
  Call("record_labels", {Number(Ask("domain", {Text("labels")}))});
  NestedLabels labels;
  labels.Begin(40);
  labels.End();
  const Recorded recorded = TakeRecorded();
  ASSERT_EQ(recorded.pushes.size(), 40u);
  EXPECT_EQ(recorded.pops.size(), 40u);
  EXPECT_EQ(recorded.pushes[39].nvtx.name, IdOf(Ask("name", {Text("label 39")})));
  labels.Begin(1100);  // the list's 16 and 1024 more
  labels.End();
  EXPECT_EQ(TakeRecorded().pops.size(), 1040u);
  labels.Begin(2);
  labels.End();
  EXPECT_EQ(TakeRecorded().size(), 4u);
}

TEST_F(TorchFunctionsTest, ALabelThatIsOpenAsRecordingBeginsIsARangeAndEndsOnce) {
  const uint64_t domain = Ask("domain", {Text("labels")});
  ClearCapture(kCaptureFramework);
  Call("record_labels", {Number(domain)});
  NestedLabels labels;
  labels.Begin(18);
  SetCapture(kCaptureFramework);
  Call("record_labels", {Number(domain)});
  labels.Begin(1);
  labels.End();
  const Recorded recorded = TakeRecorded();
  EXPECT_EQ(recorded.pushes.size(), 17u) << "the 16 of the list, and the one that began since";
  EXPECT_EQ(recorded.pops.size(), 17u);
}

TEST_F(TorchFunctionsTest, ALabelOfAnEarlierTimeOfRecordingEndsNothingInThisOne) {
  Call("record_labels", {Number(Ask("domain", {Text("labels")}))});
  NestedLabels labels;
  labels.Begin(20);
  EXPECT_EQ(TakeRecorded().pushes.size(), 20u);
  EndTimeOfLabels();
  labels.End();
  EXPECT_EQ(TakeRecorded().size(), 0u);
}

TEST_F(TorchFunctionsTest, AnEndWithoutABeginIsNothing) {
  Call("record_labels", {Number(Ask("domain", {Text("labels")}))});
  EndLabel(this);
  EXPECT_EQ(TakeRecorded().size(), 0u);
}

TEST_F(TorchFunctionsTest, ALongMarkIsCutAndSaysHowMuchIsMissing) {
  const std::string text(70'000, 'x');
  Call("mark", {Number(0), Number(Ask("name", {Text("note")})),
                MadeUpPython::Text(text, PyObject::Kind::kBytes)});
  const Recorded recorded = TakeRecorded();
  ASSERT_EQ(recorded.marks.size(), 1u);
  EXPECT_EQ(recorded.marks[0].nvtx.payload_dropped, 10'000u);
}

TEST_F(TorchFunctionsTest, ArgumentsOfAnotherKindOrNumberRecordNothingAndRaiseNothing) {
  Call("mark", {Number(0), Number(1), Text("a text, not bytes")});
  Call("push", {Number(0)});
  EXPECT_EQ(Ask("open", {Number(0)}), 0u);
  EXPECT_EQ(Ask("name", {Number(4)}), Ask("name", {Text("")}));
  EXPECT_EQ(Ask("probe_operators", {Number(1)}), 0u);
  EXPECT_EQ(Ask("start_operators", {Number(1)}), 0u);
  EXPECT_EQ(TakeRecorded().size(), 0u);
}

TEST_F(TorchFunctionsTest, ANoteAndAnotherProfilersTimeAreAnnounced) {
  Call("note", {Text("no labels here")});
  EXPECT_THAT(TakeNotes(), ElementsAre("no labels here"));
  Call("gap", {Number(10), Number(20), Text("torch.profiler")});
  const std::vector<Announcement> announced = TakeAnnounced();
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_EQ(announced[0].type, proto::FrameType::kGap);
  EXPECT_NE(announced[0].payload.find("torch.profiler"), std::string::npos);
}

TEST_F(TorchFunctionsTest, TheRankIsToldWhileTheAgentIsThere) {
  g_told_ranks.clear();
  Call("tell_rank", {Number(3)});
  EXPECT_THAT(g_told_ranks, IsEmpty()) << "no world size";
  Call("tell_rank", {Number(3), Number(8)});
  EXPECT_THAT(g_told_ranks, ElementsAre(3, 8));
  GoQuiet();
  Call("tell_rank", {Number(4), Number(8)});
  EXPECT_THAT(g_told_ranks, ElementsAre(3, 8));
}

}  // namespace
}  // namespace ranktap::agent
