// The agent's hand-written messages, read by the classes that protoc generates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "agent/core/announcements.h"
#include "agent/sources/cupti/cupti_encode.h"
#include "agent/sources/nvtx/nvtx_encode.h"
#include "agent/transport/messages.h"
#include "proto/encode_entry.h"
#include "proto/frame.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/dictionary.pb.h"
#include "ranktap/v1/flight.pb.h"
#include "ranktap/v1/hello.pb.h"
#include "ranktap/v1/kept.pb.h"
#include "ranktap/v1/status.pb.h"
#include "ranktap/v1/trial.pb.h"
#include "tests/contract/schema.h"
#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent {
namespace {

template <typename Message>
Message Parse(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

template <typename Append, typename... Fields>
std::string Bytes(Append&& append, const Fields&... fields) {
  std::string bytes;
  append(fields..., bytes);
  return bytes;
}

TEST(MessagesContractTest, Hello) {
  const std::array<uint8_t, 16> session{1, 2, 3};
  ProcessInfo process{};
  process.pid = 42;
  process.parent_pid = 41;
  process.uid = 1000;
  process.ns_pids = {4242, 42};
  process.host = "node7";
  process.boot_id = "boot";
  process.executable = "/usr/bin/python3";
  process.start_ticks = 99;
  process.start_realtime_ns = 100;
  process.command_line = {"python3", "train.py"};
  const std::string bytes = EncodeHello({.session = session,
                                         .process = process,
                                         .rank = {.rank = 3,
                                                  .local_rank = 1,
                                                  .world_size = 8,
                                                  .local_world_size = 4,
                                                  .node_rank = 0,
                                                  .restart = 2,
                                                  .job = "job",
                                                  .origin = "RANK"},
                                         .loaded_by = proto::LoadedBy::kPreload,
                                         .level = proto::Level::kKernels,
                                         .host_clock = proto::HostClockKind::kTsc,
                                         .segment_bytes = 1 << 25,
                                         .notes = {"a note"},
                                         .schedule = "wait=5",
                                         .socket = "/run/socket"});
  const auto hello = Parse<v1::Hello>(bytes);
  EXPECT_EQ(hello.protocol_min(), kProtocolMin);
  EXPECT_EQ(hello.protocol_max(), kProtocolMax);
  EXPECT_EQ(hello.session().size(), 16u);
  EXPECT_FALSE(hello.agent_version().empty());
  EXPECT_EQ(hello.process().pid(), 42u);
  ASSERT_EQ(hello.process().ns_pids_size(), 2);
  EXPECT_EQ(hello.process().ns_pids(0), 4242u);
  EXPECT_EQ(hello.process().parent_pid(), 41u);
  EXPECT_EQ(hello.process().uid(), 1000u);
  EXPECT_EQ(hello.process().host(), "node7");
  EXPECT_EQ(hello.process().boot_id(), "boot");
  EXPECT_EQ(hello.process().start_ticks(), 99u);
  EXPECT_EQ(hello.process().start_realtime_ns(), 100u);
  EXPECT_EQ(hello.process().executable(), "/usr/bin/python3");
  EXPECT_EQ(hello.process().command_line(1), "train.py");
  EXPECT_EQ(hello.loaded_by(), v1::LOADED_BY_PRELOAD);
  EXPECT_EQ(hello.level(), v1::LEVEL_KERNELS);
  EXPECT_EQ(hello.rank().rank(), 3u);
  EXPECT_EQ(hello.rank().local_rank(), 1u);
  EXPECT_EQ(hello.rank().world_size(), 8u);
  EXPECT_EQ(hello.rank().local_world_size(), 4u);
  EXPECT_TRUE(hello.rank().has_node_rank());
  EXPECT_EQ(hello.rank().restart(), 2u);
  EXPECT_EQ(hello.rank().job(), "job");
  EXPECT_EQ(hello.rank().origin(), "RANK");
  EXPECT_EQ(hello.host_clock().kind(), v1::HostClock::KIND_TSC);
  EXPECT_EQ(hello.segment().version(), proto::kSegmentVersion);
  EXPECT_EQ(hello.segment().bytes(), 1u << 25);
  EXPECT_EQ(hello.notes(0), "a note");
  EXPECT_EQ(Parse<v1::HelloSettings>(bytes).schedule(), "wait=5");
  EXPECT_EQ(Parse<v1::HelloSettings>(bytes).socket(), "/run/socket");
}

TEST(MessagesContractTest, AnUnknownRankIsAbsentRatherThanZero) {
  std::string bytes;
  AppendRank(RankIdentity{}, bytes);
  EXPECT_FALSE(Parse<v1::Hello>(bytes).rank().has_rank());
}

TEST(MessagesContractTest, Announcements) {
  (void)TakeAnnounced();
  AnnounceLevel(proto::Level::kRanges);
  AnnounceNote("no libcupti");
  AnnounceGap({.reason = proto::GapReason::kOtherProfiler,
               .source = "cupti",
               .start_ticks = 5,
               .end_ticks = 9,
               .detail = "Kineto"});
  AnnounceFlight({.number = 5, .backend = "nccl", .text = "{}", .problem = "cut", .is_last = true});
  const auto announced = TakeAnnounced();
  ASSERT_EQ(announced.size(), 4u) << "in the order they were made";
  EXPECT_EQ(Parse<v1::Hello>(announced[0].payload).level(), v1::LEVEL_RANGES);
  EXPECT_EQ(Parse<v1::Hello>(announced[1].payload).notes(0), "no libcupti");
  const auto gap = Parse<v1::Gap>(announced[2].payload);
  EXPECT_EQ(gap.reason(), v1::Gap::REASON_OTHER_PROFILER);
  EXPECT_EQ(gap.source(), "cupti");
  EXPECT_EQ(gap.start_ticks(), 5u);
  EXPECT_EQ(gap.end_ticks(), 9u);
  EXPECT_EQ(gap.detail(), "Kineto");
  EXPECT_EQ(announced[3].type, proto::FrameType::kFlight);
  const auto part = Parse<v1::FlightPart>(announced[3].payload);
  EXPECT_EQ(part.number(), 5u);
  EXPECT_EQ(part.backend(), "nccl");
  EXPECT_EQ(part.text(), "{}");
  EXPECT_EQ(part.problem(), "cut");
  EXPECT_TRUE(part.is_last());
}

TEST(MessagesContractTest, EveryCostCounterIsAFieldOfItsNameAndTheReverse) {
  const auto* schema = FindInSchema("Cost");
  ASSERT_NE(schema, nullptr);
  for (const CostCounter& counter : kCostCounters) {
    const auto* field = schema->FindFieldByNumber(static_cast<int>(counter.field));
    ASSERT_NE(field, nullptr) << counter.name << " is not in v1.Cost";
    EXPECT_EQ(field->name(), counter.name) << "field " << counter.field;
  }
  for (int i = 0; i < schema->field_count(); ++i) {
    EXPECT_EQ(std::ranges::count(kCostCounters, schema->field(i)->name(), &CostCounter::name), 1)
        << schema->field(i)->name() << " of v1.Cost against the counters of cost_fields.h";
  }
}

TEST(MessagesContractTest, EveryCostCounterArrivesWithItsValue) {
  CostFields fields;
  for (const CostCounter& counter : kCostCounters) fields.*counter.member = 100 + counter.field;
  const auto cost = Parse<v1::Cost>(Bytes(AppendCost, fields));
  EXPECT_EQ(cost.callbacks(), 101u);
  EXPECT_EQ(cost.drain_cpu_ns(), 103u);
  EXPECT_EQ(cost.flushes(), 111u);
  EXPECT_EQ(cost.stacks_unnamed(), 119u);
  EXPECT_EQ(cost.budget_ppm(), 120u);
  EXPECT_EQ(cost.watched_ns(), 122u);
}

TEST(MessagesContractTest, ClockWriterAccount) {
  const auto clocks = Parse<v1::ClockReadings>(
      Bytes(AppendClock,
            ClockReading{.tsc = 1, .monotonic_raw_ns = 2, .realtime_ns = 3, .spread_ns = 4}));
  ASSERT_EQ(clocks.readings_size(), 1);
  EXPECT_EQ(clocks.readings(0).tsc(), 1u);
  EXPECT_EQ(clocks.readings(0).monotonic_raw_ns(), 2u);
  EXPECT_EQ(clocks.readings(0).realtime_ns(), 3u);
  EXPECT_EQ(clocks.readings(0).spread_ns(), 4u);

  proto::WriterSlot slot{};
  slot.id = 5;
  slot.kind = static_cast<uint32_t>(proto::WriterKind::kDrain);
  slot.thread = 77;
  std::memcpy(slot.name, "python", 7);
  slot.produced = 12;
  slot.lost[static_cast<size_t>(proto::Loss::kNested)] = 2;
  const auto writer = Parse<v1::Dictionary>(Bytes(AppendWriter, slot)).writers(0);
  EXPECT_EQ(writer.id(), 5u);
  EXPECT_EQ(writer.kind(), 2u);
  EXPECT_EQ(writer.thread(), 77);
  EXPECT_EQ(writer.name(), "python");
  const auto account = Parse<v1::Accounts>(Bytes(AppendAccount, slot, 10)).accounts(0);
  EXPECT_EQ(account.writer(), 5u);
  EXPECT_EQ(account.produced(), 12u);
  EXPECT_EQ(account.committed(), 10u);
  ASSERT_EQ(account.lost_size(), static_cast<int>(proto::kLossCount));
  EXPECT_EQ(account.lost(static_cast<int>(proto::Loss::kNested)), 2u);
  EXPECT_TRUE(account.ended());
}

TEST(MessagesContractTest, WhatTheCollectorSays) {
  v1::Welcome welcome;
  welcome.set_protocol(1);
  welcome.set_level(v1::LEVEL_FULL);
  welcome.set_refused("no room");
  welcome.set_retry_after_ms(500);
  welcome.set_takes_spools(true);
  auto* position = welcome.add_positions();
  position->set_writer(4);
  position->set_next_event(1000);
  v1::WelcomeOfKept kept;
  kept.set_tell_again_ms(10'000);
  const std::string welcome_bytes = welcome.SerializeAsString() + kept.SerializeAsString();
  const auto decoded = DecodeWelcome(std::as_bytes(std::span(welcome_bytes)));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->protocol, 1u);
  EXPECT_EQ(decoded->level, proto::Level::kFull);
  EXPECT_EQ(decoded->refused, "no room");
  EXPECT_EQ(decoded->retry_after_ms, 500u);
  EXPECT_TRUE(decoded->takes_spools);
  EXPECT_EQ(decoded->tell_again_ms, 10'000u);

  v1::DictionaryOfKept again;
  again.set_told_again(true);
  EXPECT_EQ(again.SerializeAsString(), proto::kToldAgainMessage);
  ASSERT_EQ(decoded->positions.size(), 1u);
  EXPECT_EQ(decoded->positions[0], (std::pair<uint32_t, uint64_t>{4, 1000}));

  v1::Ack ack;
  ack.set_frames(17);
  const std::string ack_bytes = ack.SerializeAsString();
  EXPECT_EQ(DecodeAck(std::as_bytes(std::span(ack_bytes))), 17u);

  v1::LevelChange change;
  change.set_level(v1::LEVEL_DORMANT);
  change.set_window(3);
  change.set_reason("stop");
  change.set_at_realtime_ns(1'700'000'000'000'000'000);
  change.set_until_realtime_ns(1'700'000'001'000'000'000);
  change.set_level_after(v1::LEVEL_RANGES);
  const std::string change_bytes = change.SerializeAsString();
  const auto order = DecodeLevelChange(std::as_bytes(std::span(change_bytes)));
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->level, proto::Level::kDormant);
  EXPECT_EQ(order->window, 3u);
  EXPECT_EQ(order->reason, "stop");
  EXPECT_EQ(order->at_realtime_ns, 1'700'000'000'000'000'000u);
  EXPECT_EQ(order->until_realtime_ns, 1'700'000'001'000'000'000u);
  EXPECT_EQ(order->level_after, proto::Level::kRanges);

  v1::CuptiTrialResult result;
  result.set_outcome(v1::CuptiTrialResult::OUTCOME_DIED);
  const std::string result_bytes = result.SerializeAsString();
  EXPECT_EQ(DecodeCuptiTrialResult(std::as_bytes(std::span(result_bytes))),
            proto::TrialOutcome::kDied);

  v1::FlightRequest request;
  request.set_number(5);
  const std::string request_bytes = request.SerializeAsString();
  EXPECT_EQ(DecodeFlightRequest(std::as_bytes(std::span(request_bytes))), 5u);

  const std::string garbage = "\xff\xff\xff\xff\xff";
  EXPECT_FALSE(DecodeWelcome(std::as_bytes(std::span(garbage))).has_value());
}

TEST(MessagesContractTest, PayloadSchemasAndEnums) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      {.flags = 0, .type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "comm", .description = "hash"},
      {.flags = 0, .type = NVTX_PAYLOAD_ENTRY_TYPE_SIZE, .name = "bytes", .offset = 8}};
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.name = "AllReduce";
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 2;
  schema.payloadStaticSize = 16;
  const auto parsed = Parse<v1::PayloadSchema>(EncodeSchema(1 << 24, 2, schema));
  EXPECT_EQ(parsed.schema_id(), 1u << 24);
  EXPECT_EQ(parsed.domain(), 2u);
  EXPECT_EQ(parsed.name(), "AllReduce");
  EXPECT_EQ(parsed.payload_static_size(), 16u);
  ASSERT_EQ(parsed.entries_size(), 2);
  EXPECT_EQ(parsed.entries(0).name(), "comm");
  EXPECT_EQ(parsed.entries(0).description(), "hash");
  EXPECT_EQ(parsed.entries(1).offset(), 8u);

  const nvtxPayloadEnum_t values[] = {{.name = "sum", .value = 0, .isFlag = 0},
                                      {.name = "prod", .value = 1, .isFlag = 1}};
  nvtxPayloadEnumAttr_t enumeration{};
  enumeration.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                          NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  enumeration.name = "RedOp";
  enumeration.entries = values;
  enumeration.numEntries = 2;
  enumeration.sizeOfEnum = 4;
  const auto parsed_enum = Parse<v1::PayloadEnum>(EncodeEnum(7, 0, enumeration));
  EXPECT_EQ(parsed_enum.name(), "RedOp");
  EXPECT_EQ(parsed_enum.size(), 4u);
  ASSERT_EQ(parsed_enum.values_size(), 2);
  EXPECT_EQ(parsed_enum.values(1).name(), "prod");
  EXPECT_TRUE(parsed_enum.values(1).is_flag());
}

TEST(MessagesContractTest, Devices) {
  cupti::DeviceRecord record{};
  record.id = 2;
  record.name = "NVIDIA H200";
  record.memory_bytes = 141ull << 30;
  record.compute_major = 9;
  record.multiprocessors = 132;
  record.threads_per_warp = 32;
  record.max_warps_per_multiprocessor = 64;
  const auto hello = Parse<v1::Hello>(cupti::EncodeDevice(record));
  ASSERT_EQ(hello.devices_size(), 1);
  EXPECT_EQ(hello.devices(0).id(), 2u);
  EXPECT_EQ(hello.devices(0).name(), "NVIDIA H200");
  EXPECT_EQ(hello.devices(0).total_global_mem(), 141ull << 30);
  EXPECT_EQ(hello.devices(0).compute_major(), 9u);
  EXPECT_EQ(hello.devices(0).num_sms(), 132u);
  EXPECT_EQ(hello.devices(0).max_threads_per_multiprocessor(), 2048u);
  EXPECT_EQ(hello.devices(0).uuid().size(), 16u);
}

TEST(MessagesContractTest, TheSmallEnumsHaveTheSchemasNumbers) {
  EXPECT_EQ(static_cast<int>(proto::Level::kCounters), v1::LEVEL_COUNTERS);
  EXPECT_EQ(static_cast<int>(proto::Level::kDormant), v1::LEVEL_DORMANT);
  EXPECT_EQ(static_cast<int>(proto::LoadedBy::kAttach), v1::LOADED_BY_ATTACH);
  EXPECT_EQ(static_cast<int>(proto::GapReason::kBudget), v1::Gap::REASON_BUDGET);
  EXPECT_EQ(static_cast<int>(proto::GapReason::kConfined), v1::Gap::REASON_CONFINED);
  EXPECT_EQ(static_cast<int>(proto::HostClockKind::kMonotonicRaw),
            v1::HostClock::KIND_MONOTONIC_RAW);
}

}  // namespace
}  // namespace ranktap::agent
