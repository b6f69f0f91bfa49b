// What PyTorch's Flight Recorder holds, asked of libraries that export what PyTorch's do.
#include "agent/sources/torch/torch_flight.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>

#include "proto/frame.h"
#include "tests/unit/agent/core/announced.h"

namespace ranktap::agent {
namespace {

struct Answer {
  std::map<std::string, std::string> dumps;
  size_t parts = 0, largest_part = 0;
  std::string problem;
  bool is_whole = false;
};

Answer g_answer;

// Adds what was announced for this request; true: its last part was there.
bool TakeParts(uint64_t number) {
  for (const Announcement& each : TakeAnnounced()) {
    if (each.type != proto::FrameType::kFlight) continue;
    uint64_t of = 0;
    std::string backend, text, problem;
    bool is_last = false;
    protozero::pbf_reader part(each.payload);
    while (part.next()) {
      if (part.tag() == 1)
        of = part.get_uint64();
      else if (part.tag() == 2)
        backend = part.get_string();
      else if (part.tag() == 3)
        text = part.get_string();
      else if (part.tag() == 4)
        is_last = part.get_bool();
      else if (part.tag() == 5)
        problem = part.get_string();
      else
        part.skip();
    }
    if (of != number) continue;
    EXPECT_FALSE(each.keep) << "a later collector has not asked";
    if (!text.empty()) {
      g_answer.dumps[backend] += text;
      ++g_answer.parts;
      g_answer.largest_part = std::max(g_answer.largest_part, each.payload.size());
    }
    if (!problem.empty()) g_answer.problem = problem;
    g_answer.is_whole |= is_last;
  }
  return g_answer.is_whole;
}

Answer Await(uint64_t number) {
  g_answer = {};
  while (!TakeParts(number)) sched_yield();
  // The thread has said its last word, and is about to end.
  FinishFlight(~uint64_t{0});
  return g_answer;
}

Answer Ask(uint64_t number) {
  DumpFlightRecorder(number);
  return Await(number);
}

using Dump = std::string(const std::string& backend);

void Answers(const char* library, Dump* dump) {
  void* const handle = dlopen(library, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto* const place = static_cast<Dump**>(dlsym(handle, "made_up_dump"));
  ASSERT_NE(place, nullptr);
  *place = dump;
}

std::string Json(const std::string& backend) {
  return R"({"entries":[{"profiling_name":")" + backend + R"(:all_reduce","record_id":0}]})";
}
std::string Empty(const std::string&) { return R"({"pg_config":{},"version":"2.10"})"; }

std::atomic<bool> g_lets_go{false};
std::string Hang(const std::string& backend) {
  while (!g_lets_go.load()) sched_yield();
  return Json(backend);
}

// One process, as the libraries stay in it.
TEST(TorchFlightTest, EachBackendWithCallsIsToldInPartsAndWhatHangsThrowsOrIsTooLargeIsSaid) {
  EXPECT_EQ(Ask(1).problem, "no PyTorch with a Flight Recorder");

  Answers(MADE_UP_TORCH_CPU, &Json);
  Answer answer = Ask(2);
  EXPECT_EQ(answer.problem, "");
  EXPECT_EQ(answer.dumps, (std::map<std::string, std::string>{{"gloo", Json("gloo")}}));

  Answers(MADE_UP_TORCH_CUDA, &Json);
  answer = Ask(3);
  EXPECT_EQ(answer.dumps,
            (std::map<std::string, std::string>{{"gloo", Json("gloo")}, {"nccl", Json("nccl")}}));

  Answers(MADE_UP_TORCH_CPU, &Empty);
  EXPECT_FALSE(Ask(4).dumps.contains("gloo")) << "a recorder without calls";

  Answers(MADE_UP_TORCH_CUDA,
          [](const std::string& backend) { return Json(backend) + std::string(3 << 20, ' '); });
  answer = Ask(5);
  EXPECT_EQ(answer.dumps["nccl"].size(), Json("nccl").size() + (3 << 20));
  EXPECT_GT(answer.parts, 3u);
  EXPECT_LT(answer.largest_part, proto::kMaxPayloadBytes);

  Answers(MADE_UP_TORCH_CUDA,
          [](const std::string& backend) { return Json(backend) + std::string(16 << 20, ' '); });
  answer = Ask(6);
  EXPECT_TRUE(answer.dumps.empty());
  EXPECT_NE(answer.problem.find("more than 16 MiB"), std::string::npos) << answer.problem;

  Answers(MADE_UP_TORCH_CUDA,
          [](const std::string&) -> std::string { throw std::runtime_error("CUDA error"); });
  answer = Ask(7);
  EXPECT_EQ(answer.problem, "PyTorch could not dump its Flight Recorder");

  // gloo's comes all the same, and nobody waits for the thread.
  Answers(MADE_UP_TORCH_CPU, &Json);
  Answers(MADE_UP_TORCH_CUDA, &Hang);
  DumpFlightRecorder(8);
  g_answer = {};
  while (g_answer.dumps.empty()) EXPECT_FALSE(TakeParts(8));
  EXPECT_EQ(Ask(9).problem, "PyTorch has not answered an earlier request");
  g_lets_go.store(true);
  EXPECT_EQ(Await(8).dumps["nccl"], Json("nccl"));
}

}  // namespace
}  // namespace ranktap::agent
