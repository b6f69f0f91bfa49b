// What the callbacks make of calls, as CUPTI would raise them.
#include "agent/sources/cupti/cupti_callbacks.h"

#include <array>
#include <cerrno>
#include <utility>

#include "agent/core/host_clock.h"
#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent::cupti {
namespace {

constexpr std::array<const char*, 4> kDriverNames = {nullptr, "cuLaunchKernel",
                                                     "cuStreamSynchronize", "cuEventQuery"};
constexpr std::array<const char*, 5> kRuntimeNames = {
    nullptr, "cudaLaunchKernel_v7000", "cudaEventQuery_v3020", "cudaGraphLaunch_v10000",
    "cudaLaunchHostFunc_v10000"};
constexpr uint32_t kLaunchKernel = 1, kDriverSynchronize = 2, kEventQuery = 2, kGraphLaunch = 3,
                   kHostFunction = 4;

Result NameOf(uint32_t domain, uint32_t cbid, const char** name) {
  constexpr Result kInvalid = 1;
  const std::span<const char* const> names = domain == static_cast<uint32_t>(Domain::kRuntime)
                                                 ? std::span<const char* const>(kRuntimeNames)
                                                 : kDriverNames;
  if (cbid >= names.size() || names[cbid] == nullptr) return kInvalid;
  *name = names[cbid];
  return kSuccess;
}

// By either clock: with the TSC most calls go the usual way, without it all go the long one.
class CuptiCallbacksTest : public Rings,
                           public ::testing::WithParamInterface<proto::HostClockKind> {
 protected:
  void SetUp() override {
    clock_ = std::exchange(g_host_clock, GetParam());
    api_.GetCallbackName = &NameOf;
    api_.GetGraphNodeId = nullptr;
    calls_.Build(api_, *arena_);
    g_callbacks.api = &api_;
    g_callbacks.calls = &calls_;
    g_callbacks.buffers = &buffers_;
    BeginCapture();
  }
  void TearDown() override {
    EndCapture();
    g_host_clock = clock_;
  }

  // As Drain does around a window.
  static void BeginCapture() {
    g_callbacks.epoch.fetch_add(1);
    SetCapture(kCaptureCuda);
  }
  static void EndCapture() { ClearCapture(kCaptureCuda); }

  // One call, of which CUPTI raises both ends.
  struct RaisedCall {
    Domain domain;
    uint32_t cbid;
    int status = 0;
    uint32_t correlation = 1;
    uint64_t data = 0xa5a5a5a5a5a5a5a5;  // CUPTI promises nothing
    EventStreamParams arguments{.event = 7, .stream = 8};
    const char* symbol = nullptr;

    void Enter() { Raise(Site::kEnter); }
    void Exit() { Raise(Site::kExit); }
    void Raise(Site site) {
      ApiCallbackData raised{};
      raised.site = site;
      raised.function_params = &arguments;
      raised.return_value = &status;
      raised.correlation_data = &data;
      raised.symbol_name = symbol;
      raised.correlation_id = correlation;
      OnCallback(nullptr, static_cast<uint32_t>(domain), cbid, &raised);
    }
  };
  static void Make(RaisedCall call) {
    call.Enter();
    call.Exit();
  }

  proto::HostClockKind clock_{};
  static inline Api api_{};
  static inline CallTable calls_;
  static inline BufferPool buffers_;
};

INSTANTIATE_TEST_SUITE_P(Clocks, CuptiCallbacksTest,
                         ::testing::Values(
#if defined(__x86_64__)
                             proto::HostClockKind::kTsc,
#endif
                             proto::HostClockKind::kMonotonicRaw));

TEST_P(CuptiCallbacksTest, AThreadOfTheDriversApiGoesOnAfterAWindowThatEndedInsideACall) {
  OnNewThread([](ThreadState& thread) {
    RaisedCall across{.domain = Domain::kDriver, .cbid = kDriverSynchronize};
    across.Enter();
    EndCapture();
    across.Exit();
    BeginCapture();
    Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    EXPECT_EQ(thread.produced(), 2u);
  });
}

TEST_P(CuptiCallbacksTest, TheEndOfACallFromAnEarlierWindowIsNoEvent) {
  OnNewThread([](ThreadState& thread) {
    RaisedCall across{.domain = Domain::kRuntime, .cbid = kLaunchKernel};
    across.Enter();
    EndCapture();
    BeginCapture();
    across.Exit();
    EXPECT_EQ(thread.produced(), 0u);
    Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    EXPECT_EQ(thread.produced(), 1u);
  });
}

// Kernels before it are of the time between two windows, where the kernel kind stays on.
TEST_P(CuptiCallbacksTest, AWindowBeginsWithTheFirstCallThatBeginsInItWhateverEndsInItBefore) {
  OnNewThread([](ThreadState&) {
    RaisedCall across{.domain = Domain::kDriver, .cbid = kDriverSynchronize, .correlation = 30};
    across.Enter();
    EndCapture();
    BeginCapture();
    g_callbacks.first_correlation.store(0);
    across.Exit();
    EXPECT_EQ(g_callbacks.first_correlation.load(), 0u);
    Make({.domain = Domain::kRuntime, .cbid = kLaunchKernel, .correlation = 31});
    EXPECT_EQ(g_callbacks.first_correlation.load(), 31u);
  });
}

// CUPTI raises the end of a call also where its callback was switched on inside of it.
TEST_P(CuptiCallbacksTest, TheEndOfACallWhoseBeginWasNotSeenIsNoEvent) {
  OnNewThread([](ThreadState& thread) {
    Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    RaisedCall waiting{.domain = Domain::kRuntime, .cbid = kGraphLaunch};
    waiting.Exit();
    EXPECT_EQ(thread.produced(), 1u);

    RaisedCall outer{.domain = Domain::kRuntime, .cbid = kLaunchKernel};
    RaisedCall inner{.domain = Domain::kDriver, .cbid = kLaunchKernel};
    outer.Enter();
    inner.Exit();
    EXPECT_EQ(thread.produced(), 1u);
    outer.Exit();
    EXPECT_EQ(thread.produced(), 2u);
  });
}

TEST_P(CuptiCallbacksTest, TheDriversCallInsideTheRuntimesIsPartOfIt) {
  OnNewThread([](ThreadState& thread) {
    RaisedCall outer{.domain = Domain::kRuntime, .cbid = kLaunchKernel};
    outer.Enter();
    Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    outer.Exit();
    EXPECT_EQ(thread.produced(), 1u);
  });
}

TEST_P(CuptiCallbacksTest, ACallOfTheDriversThatWasLeftBelowTheRuntimesHidesNoLaterOne) {
  OnNewThread([](ThreadState& thread) {
    for (int i = 0; i < 100; ++i) {  // the first and the 64th are timed, and go the long way
      RaisedCall outer{.domain = Domain::kRuntime, .cbid = kLaunchKernel};
      RaisedCall left{.domain = Domain::kDriver, .cbid = kDriverSynchronize};
      outer.Enter();
      Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
      left.Enter();
      outer.Exit();
      Make({.domain = Domain::kDriver, .cbid = kLaunchKernel});
    }
    EXPECT_EQ(thread.produced(), 200u);
    EXPECT_EQ(thread.launches.load(), 200u);
  });
}

TEST_P(CuptiCallbacksTest, ErrnoIsAsItWas) {
  std::atomic<bool> wanted{false};
  g_callbacks.wants_correlation = &wanted;
  OnNewThread([](ThreadState&) {
    constexpr int kTheirs = 4711;
    for (const uint32_t correlation : {1u, 0u, 2u}) {  // 0 wakes the drain
      errno = kTheirs;
      Make({.domain = Domain::kRuntime, .cbid = kLaunchKernel, .correlation = correlation});
      EXPECT_EQ(errno, kTheirs);
    }
  });
  EXPECT_TRUE(wanted.load());
  g_callbacks.wants_correlation = nullptr;
}

TEST_P(CuptiCallbacksTest, AQueryThatFindsWorkNotDoneIsCountedAndNoEvent) {
  const uint64_t before = ThreadStates::SumOwnCost().polls;
  OnNewThread([](ThreadState& thread) {
    RaisedCall query{.domain = Domain::kRuntime, .cbid = kEventQuery, .status = kNotReady};
    for (int i = 0; i < 100; ++i) Make(query);
    EXPECT_EQ(thread.produced(), 0u);
    EXPECT_LE(thread.sampled_callbacks, 4u) << "more than every 64th is timed";
    query.status = 0;
    Make(query);
    EXPECT_EQ(thread.produced(), 1u) << "the one that found it done";
  });
  EXPECT_EQ(ThreadStates::SumOwnCost().polls, before + 100) << "the thread is gone";
}

TEST_P(CuptiCallbacksTest, OnlyALaunchThatARecordStandsForIsWaitedFor) {
  OnNewThread([](ThreadState& thread) {
    const auto last = [&thread](RaisedCall call) {
      Make(call);
      return thread.last_launch.load();
    };
    constexpr int kRefused = 1;
    EXPECT_EQ(last({.domain = Domain::kRuntime, .cbid = kLaunchKernel, .correlation = 21}), 21u);
    EXPECT_EQ(last({Domain::kRuntime, kLaunchKernel, kRefused, 22}), 21u);
    EXPECT_EQ(last({.domain = Domain::kRuntime, .cbid = kHostFunction, .correlation = 23}), 21u);
    EXPECT_EQ(last({Domain::kRuntime, kGraphLaunch, kRefused, 24}), 21u);
    EXPECT_EQ(last({.domain = Domain::kRuntime, .cbid = kGraphLaunch, .correlation = 25}), 25u);

    RaisedCall captured{.domain = Domain::kRuntime, .cbid = kLaunchKernel, .correlation = 26};
    captured.Enter();
    const GraphData node{};
    const ResourceData made{.context = nullptr, .stream = nullptr, .descriptor = &node};
    OnCallback(nullptr, static_cast<uint32_t>(Domain::kResource),
               static_cast<uint32_t>(ResourceCbid::kGraphNodeCreated), &made);
    captured.Exit();
    EXPECT_EQ(thread.last_launch.load(), 25u);
    EXPECT_EQ(thread.launches.load(), 1u);
  });
}

TEST_P(CuptiCallbacksTest, AGraphThatMayBeGoneIsNotAskedForItsId) {
  static int asked;
  asked = 0;
  api_.GetGraphId = [](void*, uint32_t*) -> Result {
    ++asked;
    return kSuccess;
  };
  OnNewThread([](ThreadState&) {
    int gone = 0;
    GraphData data{};
    data.graph = data.graph_exec = data.node = &gone;
    const ResourceData raised{.context = nullptr, .stream = nullptr, .descriptor = &data};
    const auto raise = [&raised](ResourceCbid cbid) {
      OnCallback(nullptr, static_cast<uint32_t>(Domain::kResource), static_cast<uint32_t>(cbid),
                 &raised);
    };
    raise(ResourceCbid::kGraphExecDestroyStarting);
    raise(ResourceCbid::kGraphNodeDestroyStarting);
    EXPECT_EQ(asked, 0);
    raise(ResourceCbid::kGraphExecCreated);
    EXPECT_EQ(asked, 1);
  });
  api_.GetGraphId = nullptr;
}

}  // namespace
}  // namespace ranktap::agent::cupti
