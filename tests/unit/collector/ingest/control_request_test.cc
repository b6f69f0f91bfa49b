// What a tool may ask a collector for, and whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <thread>

#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/held_store.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;
using ::testing::HasSubstr;
using Request = v1::ControlRequest;

Request Make(Request::Verb verb, const std::string& job = "") {
  Request request;
  request.set_verb(verb);
  request.set_job(job);
  return request;
}

v1::ControlReply Ask(const TestCollector& collector, const Request& request) {
  const auto reply = AskCollector(collector.socket(), request);
  EXPECT_TRUE(reply.ok()) << reply.message();
  return reply.ok() ? *reply : v1::ControlReply();
}

v1::LevelChange NextChange(FakeAgent* agent) {
  v1::LevelChange change;
  const auto frame = agent->Receive();
  EXPECT_TRUE(frame && frame->header.type == proto::FrameType::kLevel);
  EXPECT_TRUE(frame && change.ParseFromString(frame->payload));
  return change;
}

TEST(ControlRequestTest, AllRanksHearTheSameInstants) {
  TestCollector collector;
  FakeAgent first({.rank = 0}), second({.rank = 1});
  first.Join(collector.socket());
  second.Join(collector.socket());
  Request request = Make(Request::VERB_START);
  request.set_duration_ns(5'000'000'000);
  const uint64_t before = RealtimeNs();
  const auto reply = Ask(collector, request);
  EXPECT_EQ(reply.window(), 1u);
  EXPECT_GT(reply.at_realtime_ns(), before);
  EXPECT_EQ(reply.until_realtime_ns(), reply.at_realtime_ns() + 5'000'000'000);
  ASSERT_EQ(reply.processes_size(), 2);
  for (FakeAgent* agent : {&first, &second}) {
    const v1::LevelChange change = NextChange(agent);
    EXPECT_EQ(change.level(), v1::LEVEL_KERNELS);
    EXPECT_EQ(change.at_realtime_ns(), reply.at_realtime_ns());
    EXPECT_EQ(change.until_realtime_ns(), reply.until_realtime_ns());
  }
  // Who comes between order and end is told with the welcome.
  FakeAgent late({.rank = 2});
  late.Join(collector.socket());
  EXPECT_EQ(NextChange(&late).until_realtime_ns(), reply.until_realtime_ns());
}

TEST(ControlRequestTest, AStopIsWhatLaterRanksAreWelcomedWith) {
  TestCollector collector;
  FakeAgent first({.rank = 0});
  EXPECT_EQ(first.Join(collector.socket()).level(), v1::LEVEL_KERNELS);
  EXPECT_EQ(Ask(collector, Make(Request::VERB_STOP)).level(), v1::LEVEL_DORMANT);
  const v1::LevelChange change = NextChange(&first);
  EXPECT_EQ(change.level(), v1::LEVEL_DORMANT);
  while (RealtimeNs() < change.at_realtime_ns()) ::usleep(1000);
  FakeAgent late({.rank = 1});
  EXPECT_EQ(late.Join(collector.socket()).level(), v1::LEVEL_DORMANT);
}

TEST(ControlRequestTest, AJobIsKnownByItsLaunchersNameAndByItsRun) {
  TestCollector collector;
  FakeAgent agent({.rank = 3});
  agent.hello.mutable_rank()->set_job("42");
  agent.Join(collector.socket());
  // Its run's name comes back from the store, which may be after the welcome.
  while (Ask(collector, Make(Request::VERB_STATUS, "run")).processes_size() == 0) {
    std::this_thread::yield();
  }
  for (const std::string& name : {std::string("42"), collector.run_path(), std::string("run")}) {
    const auto reply = Ask(collector, Make(Request::VERB_STATUS, name));
    ASSERT_EQ(reply.processes_size(), 1) << name << ": " << reply.problem();
    EXPECT_EQ(reply.processes(0).rank(), 3u);
    EXPECT_EQ(reply.processes(0).state(), v1::ProcessStatus::STATE_CONNECTED);
  }
  EXPECT_THAT(Ask(collector, Make(Request::VERB_START, "43")).problem(),
              HasSubstr("there are: 42"));
}

TEST(ControlRequestTest, AProcessHasTheScheduleOfItsHelloAndThatOfAnOlderAgentNone) {
  TestCollector collector;
  FakeAgent with({.rank = 0}), without({.rank = 1}), long_one({.rank = 2});
  const auto set = [](FakeAgent* agent, const std::string& text) {
    v1::HelloSettings schedule;
    schedule.set_schedule(text);
    ASSERT_TRUE(agent->hello.MergeFromString(schedule.SerializeAsString()));
  };
  set(&with, "wait=5");
  set(&long_one, "wait=5," + std::string(100'000, '0'));
  for (FakeAgent* agent : {&with, &without, &long_one}) agent->Join(collector.socket());
  std::map<uint32_t, std::string> schedules;
  const auto reply = Ask(collector, Make(Request::VERB_START));
  for (const v1::ProcessStatus& process : reply.processes()) {
    schedules[process.rank()] = process.schedule();
  }
  EXPECT_EQ(schedules, (std::map<uint32_t, std::string>{{0, "wait=5"}, {1, ""}, {2, ""}}));
}

TEST(ControlRequestTest, WhatARankDoesNowIsToldToWhoAsksForItFromTheFirstRequestOn) {
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  agent.hello.mutable_host_clock()->set_kind(v1::HostClock::KIND_MONOTONIC_RAW);
  agent.Join(collector.socket());
  const proto::ArenaRef name = agent.InternText("train_step 5");
  const uint32_t writer = agent.AddWriter();
  const auto step = [&](uint64_t begin, uint64_t end) {
    agent.Emit(writer, proto::RangePushEvent{.time_ticks = begin, .nvtx = {.name = name}});
    agent.Emit(writer, proto::RangePopEvent{.time_ticks = end, .domain = 0});
    agent.Flush();
    agent.AwaitAcks();
  };
  Request request = Make(Request::VERB_STATUS);
  step(1'000, 2'000);
  EXPECT_FALSE(Ask(collector, request).processes(0).has_live()) << "nobody asked";
  request.set_live(true);
  EXPECT_EQ(Ask(collector, request).processes(0).live().steps(), 0u);
  step(3'000, 7'000);
  const v1::LiveStatus live = Ask(collector, request).processes(0).live();
  ASSERT_EQ(live.step_ns_size(), 1) << "names that came earlier are known";
  EXPECT_EQ(live.step_ns(0), 4'000u);
  EXPECT_EQ(live.step_number(), 5u);
}

TEST(ControlRequestTest, AnotherUserNeitherSeesNorStartsWhatIsNotTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ServerOptions options;
  options.all_users = true;
  TestCollector collector(options);
  ASSERT_EQ(::chmod(std::filesystem::path(collector.socket()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(collector.socket().c_str(), 0666), 0);
  FakeAgent agent({.rank = 0});
  agent.Join(collector.socket());
  const int status = RunChild([&] {
    if (::setuid(65534) != 0) return 10;
    const auto seen = AskCollector(collector.socket(), Make(Request::VERB_STATUS));
    if (!seen || seen->processes_size() != 0) return 11;
    const auto started = AskCollector(collector.socket(), Make(Request::VERB_STOP));
    return started && started->processes_size() == 0 ? 0 : 12;
  });
  EXPECT_EQ(status, 0);
  // The next order that the agent hears of is root's.
  (void)Ask(collector, Make(Request::VERB_START));
  EXPECT_EQ(NextChange(&agent).level(), v1::LEVEL_KERNELS);
}

TEST(ControlRequestTest, AnOrderBeforeItsRunIsKnownReachesThatRunAndNoOther) {
  const TemporaryDirectory directory;
  const std::string socket = directory / "sockets" + "/s";
  HeldStore store(directory / "runs", socket);
  store.Hold();
  FakeAgent ours, others, later;
  ours.hello.mutable_rank()->set_job("42");
  others.hello.mutable_rank()->set_job("43");
  later.hello.mutable_rank()->set_job("43");
  EXPECT_EQ(ours.Join(socket).level(), v1::LEVEL_RANGES);
  (void)others.Join(socket);
  Request request = Make(Request::VERB_START, "42");
  request.set_level(v1::LEVEL_FULL);
  const auto reply = AskCollector(socket, request);
  ASSERT_TRUE(reply.ok()) << reply.message();
  EXPECT_EQ(reply->problem(), "");
  while (RealtimeNs() < reply->at_realtime_ns()) ::usleep(1000);
  EXPECT_EQ(later.Join(socket).level(), v1::LEVEL_RANGES);
  store.GoOn();
  EXPECT_EQ(NextChange(&ours).window(), reply->window());
  // Whoever joins the run then is in the window, too.
  FakeAgent second;
  second.hello.mutable_rank()->set_job("42");
  (void)second.Join(socket);
  EXPECT_EQ(NextChange(&second).level(), v1::LEVEL_FULL);
  // The next that the others hear of is for them.
  const auto theirs = AskCollector(socket, Make(Request::VERB_STOP, "43"));
  ASSERT_TRUE(theirs.ok());
  EXPECT_EQ(NextChange(&others).level(), v1::LEVEL_DORMANT);
}

TEST(ControlRequestTest, AnUnknownVerbOrLevelIsRefusedWithAReason) {
  TestCollector collector;
  FakeAgent agent;
  agent.Join(collector.socket());
  EXPECT_THAT(Ask(collector, Make(Request::VERB_UNKNOWN)).problem(), HasSubstr("newer"));
  Request request = Make(Request::VERB_START);
  request.set_level(v1::LEVEL_DORMANT);
  EXPECT_THAT(Ask(collector, request).problem(), HasSubstr("no level to start at"));
}

}  // namespace
}  // namespace ranktap::collector
