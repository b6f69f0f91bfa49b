// What launched work waits for, and where in the program a loss arises.
#include <gtest/gtest.h>

#include "collector/report/steps/verdict.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/steps/planted_program.h"

namespace ranktap::collector {
namespace {

void ExpectSaid(Run& run, const std::string& text) {
  const std::string sentence = Judge(run).sentence;
  EXPECT_NE(sentence.find(text), std::string::npos) << sentence;
}

// `call_ms`: how long the host sits in the launch of a kernel that begins after 6 ms.
Program AStepWhoseLaunchTakes(int64_t call_ms) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddOperator("aten::conv2d", at, at + 6 * kMs);
    program.AddKernel(at, at + 6 * kMs, at + 10 * kMs);
    TimeColumn& returns = program.trace().api_calls.end;
    if (call_ms > 0) returns.Set(returns.size() - 1, at + call_ms * kMs);
  }
  NestOperators(&program.trace());
  return program;
}

// A module is loaded, a context is made, a kernel is compiled: the host does it.
TEST(LossPlace, AHostThatSitsInALaunchCallIsTheHostAndTheCallIsNamedWithItsOperator) {
  Program program = AStepWhoseLaunchTakes(6);
  ExpectSaid(program.run(),
             "The largest loss is 6.000 ms of each 10.00 ms step (60.0 %): an idle device because "
             "the host launches too late (host-bound), 100.0 % of it inside of cudaLaunchKernel, "
             "in aten::conv2d.");
}

TEST(LossPlace, ALaunchThatReturnedAtOnceLeavesWorkThatWaits) {
  Program program = AStepWhoseLaunchTakes(0);
  ExpectSaid(program.run(), "(60.0 %): launched work that waits for something else");
}

// As a process's first call of CUDA, which makes the context.
TEST(LossPlace, ACallThatMakesTheHostLateIsNamedThoughItLaunchesNothing) {
  Program program;
  program.AddOperator("aten::empty", 0, 8 * kMs);
  program.AddCall("cudaDeviceGetStreamPriorityRange", 0, 8 * kMs);
  program.AddKernel(9 * kMs, 9 * kMs, 10 * kMs);
  NestOperators(&program.trace());
  ExpectSaid(program.run(),
             "The largest loss is 9.000 ms of 10.00 ms (90.0 %): an idle device "
             "because the host launches too late (host-bound), 88.9 % of it inside of "
             "cudaDeviceGetStreamPriorityRange, in aten::empty.");
}

TEST(LossPlace, AnEventThatAStreamWaitsForIsNamedWithBothStreams) {
  Program program;
  Trace& trace = program.trace();
  for (const uint32_t stream : {7u, 20u}) {
    trace.resources.push_back({.header = {},
                               .time_ticks = 0,
                               .handle = 1'000u + stream,
                               .id = stream,
                               .parent = 1,
                               .change = proto::ResourceChange::kStreamCreated,
                               .node_type = 0});
  }
  trace.dictionary.AppendApi(
      {.domain = proto::ApiDomain::kRuntime, .cbid = 2, .name = "cudaEventRecord"});
  trace.dictionary.AppendApi(
      {.domain = proto::ApiDomain::kRuntime, .cbid = 3, .name = "cudaStreamWaitEvent"});
  const auto call = [&trace](uint32_t api, uint64_t stream, int64_t at) {
    EventCalls& calls = trace.event_calls;
    calls.start.push_back(at);
    calls.end.push_back(at + 100);
    calls.correlation.push_back(0);
    calls.api.push_back(api);
    calls.writer.push_back(0);
    calls.event.push_back(55);
    calls.stream.push_back(stream);
  };
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    call(2, 1'020, at + 100);
    call(3, 1'007, at + 200);
    program.AddKernel(at + 1'000, at + 6 * kMs, at + 10 * kMs);
  }
  ExpectSaid(program.run(),
             "launched work that waits for something else: for an event of stream "
             "20, which stream 7 was told to wait for");
}

TEST(LossPlace, ThePhaseTheHostWasInIsNamed) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at, at + 6 * kMs);
    program.AddKernel(at + 8 * kMs, at + 8 * kMs, at + 10 * kMs);
  }
  ExpectSaid(program.run(), "(host-bound), 75.0 % of it in the backward pass");
}

TEST(LossPlace, TheProgramsOwnLineIsNamed) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddOperator("aten::mm", at, at + 9 * kMs);
    program.AddKernel(at + 8 * kMs, at + 8 * kMs, at + 10 * kMs);
  }
  Trace& trace = program.trace();
  NestOperators(&trace);
  const uint32_t stack = trace.dictionary.AppendString(
      "<built-in method mm>;/lib/torch/nn/functional.py(9): linear;train.py(12): step");
  for (size_t i = 0; i < trace.operators.size(); ++i) trace.operators.stack.push_back(stack);
  ExpectSaid(program.run(), "(host-bound), 100.0 % of it at train.py(12): step");
}

TEST(LossPlace, AModuleWithMoreThanHalfOfTheLossIsNamedAndOneWithLessIsNot) {
  for (const int64_t more : {6, 1}) {
    Program program;
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.AddStep(at, at + 10 * kMs);
      program.AddRange(proto::kModuleDomain, "Net.slow", at, at + (more + 1) * kMs);
      program.AddOperator("aten::mm", at, at + (more + 1) * kMs);
      program.AddKernel(at + more * kMs, at + more * kMs, at + (more + 1) * kMs);
      for (int64_t i = more + 1; i + 2 <= 10; i += 2) {
        program.AddOperator("aten::add", at + i * kMs, at + (i + 2) * kMs);
        program.AddKernel(at + (i + 1) * kMs, at + (i + 1) * kMs, at + (i + 2) * kMs);
      }
    }
    NestOperators(&program.trace());
    const std::string sentence = Judge(program.run()).sentence;
    EXPECT_EQ(sentence.find("% of it in the forward pass, 86.2 % in module Net.slow") !=
                  std::string::npos,
              more == 6)
        << sentence;
    EXPECT_EQ(sentence.find("Net.slow") != std::string::npos, more == 6) << sentence;
  }
}

}  // namespace
}  // namespace ranktap::collector
