#include "collector/file/trace_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/trace/dictionary.h"

namespace ranktap::collector {
namespace {

std::span<const std::byte> BytesIn(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Texts(std::initializer_list<std::pair<uint32_t, std::string>> texts) {
  v1::Dictionary dictionary;
  for (const auto& [id, text] : texts) {
    v1::Text& entry = *dictionary.add_strings();
    entry.set_id(id);
    entry.set_text(text);
  }
  return dictionary.SerializeAsString();
}

// The frame keeps its payload alive.
struct OwnedFrame {
  OwnedFrame(const proto::FrameFields& fields, std::string bytes) : payload(std::move(bytes)) {
    view.status = proto::FrameStatus::kComplete;
    view.header = proto::MakeFrameHeader(fields, BytesIn(payload));
    view.payload = BytesIn(payload);
  }
  std::string payload;
  proto::FrameView view;
};

TEST(TraceStateTest, ARepeatedDictionaryIsKeptOnce) {
  TraceState state;
  std::string fresh;
  ASSERT_TRUE(state.TakeNewEntries(BytesIn(Texts({{1, "a"}, {2, "b"}})), &fresh));
  ASSERT_TRUE(state.TakeNewEntries(BytesIn(Texts({{1, "a"}, {2, "b"}, {3, "c"}})), &fresh));
  EXPECT_EQ(state.dictionary(), Texts({{1, "a"}, {2, "b"}, {3, "c"}}));
  EXPECT_EQ(state.entries().LargestId(1), 3u);
  EXPECT_FALSE(state.entries().Contains(1, 4));
}

TEST(TraceStateTest, SchemasOfTwoDomainsMayShareAnId) {
  v1::Dictionary dictionary;
  for (const uint32_t domain : {1u, 2u}) {
    v1::PayloadSchema& schema = *dictionary.add_schemas();
    schema.set_schema_id(1 << 24);
    schema.set_domain(domain);
    schema.set_name("of domain " + std::to_string(domain));
  }
  TraceState state;
  std::string fresh;
  ASSERT_TRUE(state.TakeNewEntries(BytesIn(dictionary.SerializeAsString()), &fresh));
  Dictionary names;
  ASSERT_TRUE(names.Add(BytesIn(state.dictionary())));
  ASSERT_NE(names.Schema(2, 1 << 24), nullptr);
  EXPECT_EQ(names.Schema(2, 1 << 24)->name(), "of domain 2");
  EXPECT_EQ(names.Schema(1, 1 << 24)->name(), "of domain 1");
}

TEST(TraceStateTest, ADictionaryWithAnImpossibleIdIsRefusedWhole) {
  TraceState state;
  std::string fresh;
  EXPECT_FALSE(state.TakeNewEntries(BytesIn(Texts({{1, "a"}, {kMaxEntryId + 1, "b"}})), &fresh));
  EXPECT_FALSE(state.TakeNewEntries(BytesIn(Texts({{0, "none"}})), &fresh));
  EXPECT_FALSE(state.TakeNewEntries(BytesIn("\x0a\x7fshort"), &fresh));
  EXPECT_TRUE(state.dictionary().empty());
}

TEST(TraceStateTest, AnAmendmentReplacesByKeyAndAddsWhatIsNew) {
  v1::Hello hello;
  hello.set_session("first");
  hello.mutable_rank()->set_rank(3);
  hello.add_notes("a");
  hello.add_devices()->set_id(0);
  hello.mutable_devices(0)->set_name("old");
  v1::Hello amendment;
  amendment.set_session("other");
  amendment.mutable_rank()->set_world_size(8);
  amendment.add_notes("a");
  amendment.add_notes("b");
  amendment.add_devices()->set_id(0);
  amendment.mutable_devices(0)->set_name("new");
  amendment.add_devices()->set_id(1);
  TraceState::Amend(amendment, &hello);
  EXPECT_EQ(hello.session(), "first");
  EXPECT_EQ(hello.rank().rank(), 3u);
  EXPECT_EQ(hello.rank().world_size(), 8u);
  EXPECT_EQ(hello.notes_size(), 2);
  ASSERT_EQ(hello.devices_size(), 2);
  EXPECT_EQ(hello.devices(0).name(), "new");
}

TEST(TraceStateTest, ACheckpointHoldsWhatTheFramesSaid) {
  TraceState state;
  state.hello().set_session("0123456789abcdef");
  const OwnedFrame names({.type = proto::FrameType::kDictionary}, Texts({{1, "gemm"}}));
  ASSERT_TRUE(state.Note(names.view));
  proto::FrameLossCounts lost{};
  lost[0] = 4;
  const OwnedFrame events({.type = proto::FrameType::kEvents,
                           .writer = 5,
                           .first_event = 90,
                           .events = 10,
                           .lost = lost},
                          "");
  ASSERT_TRUE(state.Note(events.view));
  v1::LostRange range;
  range.set_writer(5);
  range.set_first_event(100);
  range.set_events(7);
  const OwnedFrame loss({.type = proto::FrameType::kLoss, .writer = 5}, range.SerializeAsString());
  ASSERT_TRUE(state.Note(loss.view));
  EXPECT_EQ(state.NextEvent(5), 107u);

  v1::Checkpoint extra;
  extra.set_incarnation(2);
  const uint64_t least = state.EncodeCheckpoint({}).size();
  EXPECT_GE(state.CheckpointBytes(), least);
  EXPECT_LE(state.CheckpointBytes(), least + 100);
  const std::string bytes = state.EncodeCheckpoint(extra);
  v1::Checkpoint checkpoint;
  std::string dictionary;
  ASSERT_TRUE(ParseCheckpoint(BytesIn(bytes), &checkpoint, &dictionary));
  EXPECT_EQ(checkpoint.hello().session(), "0123456789abcdef");
  EXPECT_EQ(checkpoint.incarnation(), 2u);
  ASSERT_EQ(checkpoint.positions_size(), 1);
  EXPECT_EQ(checkpoint.positions(0).next_event(), 107u);
  EXPECT_EQ(dictionary, Texts({{1, "gemm"}}));
  // And it is what protoc's class reads, too.
  v1::Checkpoint whole;
  ASSERT_TRUE(whole.ParseFromString(bytes));
  EXPECT_EQ(whole.dictionary().strings(0).text(), "gemm");
}

TEST(TraceStateTest, AFrameThatIsNotWhatItsTypeSaysIsNotNoted) {
  TraceState state;
  for (const auto type : {proto::FrameType::kDictionary, proto::FrameType::kAmend,
                          proto::FrameType::kClock, proto::FrameType::kGap, proto::FrameType::kCost,
                          proto::FrameType::kGoodbye, proto::FrameType::kAccounts}) {
    const OwnedFrame frame({.type = type}, "\x0a\x7fno message");
    EXPECT_FALSE(state.Note(frame.view)) << static_cast<int>(type);
  }
  EXPECT_FALSE(state.said_goodbye());
}

}  // namespace
}  // namespace ranktap::collector
