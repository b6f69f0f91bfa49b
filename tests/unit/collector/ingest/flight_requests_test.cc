// Flight Recorder dumps: asked of the processes of a hang, put together from parts, in no file.
#include <gtest/gtest.h>

#include <future>

#include "collector/trace/load/trace_check.h"
#include "proto/frame.h"
#include "ranktap/v1/flight.pb.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using Records = std::vector<FlightRecord>;

std::future<Records> Ask(TestCollector* collector, const std::vector<pid_t>& processes) {
  auto told = std::make_shared<std::promise<Records>>();
  collector->collector().AskFlight(
      processes, [told](Records records) { told->set_value(std::move(records)); });
  return told->get_future();
}

uint64_t AwaitRequest(fakes::FakeAgent* agent) {
  while (const auto frame = agent->Receive()) {
    if (frame->header.type != proto::FrameType::kFlight) continue;
    v1::FlightRequest request;
    EXPECT_TRUE(request.ParseFromString(frame->payload));
    return request.number();
  }
  ADD_FAILURE() << "the collector has closed the connection";
  return 0;
}

void SendPart(fakes::FakeAgent* agent, uint64_t number, const std::string& text, bool is_last,
              const std::string& backend = "gloo", const std::string& problem = "") {
  v1::FlightPart part;
  part.set_number(number);
  part.set_backend(backend);
  part.set_text(text);
  part.set_problem(problem);
  part.set_is_last(is_last);
  agent->Send({.type = proto::FrameType::kFlight}, part.SerializeAsString());
}

TEST(FlightRequestsTest, PartsOfAnAnswerAreOneTextAndAreInNoFile) {
  TestCollector collector;
  fakes::FakeAgent agent({.rank = 0});
  (void)agent.Join(collector.socket());
  const uint32_t writer = agent.AddWriter();
  std::future<Records> answer = Ask(&collector, {::getpid()});
  const uint64_t number = AwaitRequest(&agent);
  SendPart(&agent, number + 7, "of another request", false);
  SendPart(&agent, number, "{\"entries\":", false);
  agent.Send({.type = proto::FrameType::kFlight}, "\xff\xff no message");
  SendPart(&agent, number, "[]}", false);
  SendPart(&agent, number, "", true, "", "CUDA did not answer");
  const Records records = answer.get();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].pid, ::getpid());
  EXPECT_EQ(records[0].dumps, (std::map<std::string, std::string>{{"gloo", "{\"entries\":[]}"}}));
  EXPECT_EQ(records[0].problem, "CUDA did not answer");
  SendPart(&agent, number, "too late", true);
  // What follows is acknowledged by numbers that count these frames, too.
  agent.Emit(writer, proto::RangePopEvent{.time_ticks = 1});
  agent.Flush();
  agent.AwaitAcks();
  agent.SayGoodbye();
  agent.Disconnect();
  (void)collector.Finish();
  const Result<RunCheck> check = CheckRun(collector.run_path());
  ASSERT_TRUE(check.ok()) << check.message();
  for (const TraceCheck& trace : check->traces) EXPECT_TRUE(trace.problems.empty());
  for (const auto& file : std::filesystem::directory_iterator(collector.run_path())) {
    EXPECT_LT(file.file_size(), 64u << 10) << file.path();
  }
}

TEST(FlightRequestsTest, WhoHasNoAgentIsNotWaitedForAndWhoEndsHasAnswered) {
  TestCollector collector;
  EXPECT_TRUE(Ask(&collector, {::getpid()}).get().empty());
  fakes::FakeAgent agent({.rank = 0});
  (void)agent.Join(collector.socket());
  std::future<Records> answer = Ask(&collector, {::getpid()});
  const uint64_t number = AwaitRequest(&agent);
  SendPart(&agent, number, "half an answ", false);
  agent.Disconnect();
  const Records records = answer.get();
  ASSERT_EQ(records.size(), 1u);
}

TEST(FlightRequestsTest, MoreThan16MiBAreNotKept) {
  TestCollector collector;
  fakes::FakeAgent agent({.rank = 0});
  (void)agent.Join(collector.socket());
  std::future<Records> answer = Ask(&collector, {::getpid()});
  const uint64_t number = AwaitRequest(&agent);
  const std::string part(1 << 19, 'x');
  for (int i = 0; i < 33; ++i) SendPart(&agent, number, part, false);
  const Records records = answer.get();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(records[0].dumps.empty());
  EXPECT_EQ(records[0].problem, "it has sent more than 16 MiB");
}

}  // namespace
}  // namespace ranktap::collector
