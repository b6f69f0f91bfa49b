// What a session leaves behind in CUPTI, for the program's own client.
#include "agent/sources/cupti/cupti_session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent::cupti {
namespace {

// The settings of a CUPTI that says yes to everything.
std::map<int, uint64_t> g_attributes;
uint32_t g_thread_ids = 0;
std::multiset<uint32_t> g_kinds;

Result GetAttribute(int attribute, size_t* bytes, void* value) {
  std::memcpy(value, &g_attributes[attribute], *bytes);
  return kSuccess;
}
Result SetAttribute(int attribute, size_t* bytes, void* value) {
  std::memcpy(&g_attributes[attribute], value, *bytes);
  return kSuccess;
}

LoadedApi Willing(uint32_t version) {
  LoadedApi loaded;
  loaded.version = version;
  Api& api = loaded.api;
  api.Subscribe = [](Subscriber* subscriber, CallbackFunction, void*) -> Result {
    *subscriber = &g_attributes;
    return kSuccess;
  };
  api.Unsubscribe = [](Subscriber) -> Result { return kSuccess; };
  api.EnableCallback = [](uint32_t, Subscriber, uint32_t, uint32_t) -> Result { return kSuccess; };
  api.ActivityRegisterCallbacks = [](BufferRequested, BufferCompleted) -> Result {
    return kSuccess;
  };
  api.ActivityEnable = [](uint32_t kind) -> Result {
    g_kinds.insert(kind);
    return kSuccess;
  };
  api.ActivityDisable = [](uint32_t kind) -> Result {
    g_kinds.erase(kind);
    return kSuccess;
  };
  api.ActivityGetAttribute = &GetAttribute;
  api.ActivitySetAttribute = &SetAttribute;
  api.GetThreadIdType = [](uint32_t* type) -> Result {
    *type = g_thread_ids;
    return kSuccess;
  };
  api.SetThreadIdType = [](uint32_t type) -> Result {
    g_thread_ids = type;
    return kSuccess;
  };
  return loaded;
}

std::map<Domain, bool> g_chosen;

class CuptiChosenCallsTest : public Rings {};

class CuptiSessionTest : public testing::TestWithParam<uint8_t> {};

// As found: 12.8 has no buffers per thread, 13.0 has, until PyTorch's profiler has ended a session.
TEST_P(CuptiSessionTest, SettingsAreAsFoundBetweenSessionsAndOursInEachOfThem) {
  const uint8_t per_thread = GetParam();
  g_attributes = {{kAttributeZeroedOutBuffer, 0}, {kAttributePerThreadBuffer, per_thread}};
  g_thread_ids = 0;
  const LoadedApi loaded = Willing(kVersion130);
  const CallTable calls;
  Session session(loaded, calls);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(session.Arm(/*late=*/false), "");
    EXPECT_EQ(g_attributes[kAttributeZeroedOutBuffer], 1);
    EXPECT_EQ(g_attributes[kAttributePerThreadBuffer], 1);
    EXPECT_EQ(g_thread_ids, kThreadIdSystem);
    session.Disarm();
    EXPECT_EQ(g_attributes[kAttributeZeroedOutBuffer], 0);
    EXPECT_EQ(g_attributes[kAttributePerThreadBuffer], per_thread);
    EXPECT_EQ(g_thread_ids, 0u);
  }
  EXPECT_EQ(session.errors(), 0u);
}

uint64_t PoolLimitInSession(uint64_t found, size_t most) {
  g_attributes = {{kAttributeDeviceBufferPoolLimit, found}};
  const LoadedApi loaded = Willing(kVersion130);
  const CallTable calls;
  Session session(loaded, calls);
  session.LimitDeviceBuffers(most);
  EXPECT_EQ(session.Arm(/*late=*/false), "");
  const uint64_t limit = g_attributes[kAttributeDeviceBufferPoolLimit];
  session.Disarm();
  EXPECT_EQ(g_attributes[kAttributeDeviceBufferPoolLimit], found);
  return limit;
}

TEST(CuptiPoolLimitTest, IsLoweredForOurSessionsNeverRaisedAndPutBack) {
  EXPECT_EQ(PoolLimitInSession(/*found=*/250, /*most=*/16), 16u);
  EXPECT_EQ(PoolLimitInSession(/*found=*/8, /*most=*/16), 8u);
  EXPECT_EQ(PoolLimitInSession(/*found=*/1000, /*most=*/300), 300u) << "a size_t, not a byte";
}

// Whoever records RUNTIME, or nothing of the sort, gets what it asked for.
TEST_F(CuptiChosenCallsTest, ApiRecordsOfSingleCallsEndWithOurSession) {
  LoadedApi loaded = Willing(kVersion130);
  loaded.api.GetCallbackName = [](uint32_t domain, uint32_t cbid, const char** name) -> Result {
    *name = domain == static_cast<uint32_t>(Domain::kRuntime) ? "cudaLaunchKernel_v7000"
                                                              : "cuLaunchKernel";
    return cbid == 1 ? kSuccess : kErrorInvalidParameter;
  };
  loaded.api.ActivityEnableRuntimeApi = [](uint32_t, uint8_t on) -> Result {
    g_chosen[Domain::kRuntime] = on != 0;
    return kSuccess;
  };
  loaded.api.ActivityEnableDriverApi = [](uint32_t, uint8_t on) -> Result {
    g_chosen[Domain::kDriver] = on != 0;
    return kSuccess;
  };
  CallTable calls;
  calls.Build(loaded.api, *arena_);
  Session session(loaded, calls);
  ASSERT_EQ(session.Arm(/*late=*/false), "");
  session.EnableApiRecords();
  EXPECT_TRUE(g_chosen[Domain::kRuntime] && g_chosen[Domain::kDriver]);
  session.DisableKinds();
  EXPECT_FALSE(g_chosen[Domain::kRuntime] || g_chosen[Domain::kDriver]);
}

TEST_P(CuptiSessionTest, AParkedOneKeepsTheKernelKindAndOurSettingsUntilItIsLeft) {
  const uint8_t per_thread = GetParam();
  g_attributes = {{kAttributeZeroedOutBuffer, 0}, {kAttributePerThreadBuffer, per_thread}};
  g_thread_ids = 0;
  g_kinds.clear();
  const LoadedApi loaded = Willing(kVersion130);
  const CallTable calls;
  Session session(loaded, calls);
  const std::multiset<uint32_t> kernels = {static_cast<uint32_t>(Kind::kConcurrentKernel),
                                           static_cast<uint32_t>(Kind::kGraphTrace)};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(session.Arm(/*late=*/false), "");
    EXPECT_FALSE(session.parked());
    const size_t kinds = g_kinds.size();
    EXPECT_EQ(kinds, RecordedKinds().size() + 1) << "each once";
    session.Park();
    EXPECT_TRUE(session.parked());
    EXPECT_FALSE(session.armed());
    EXPECT_EQ(g_kinds, kernels);
    EXPECT_EQ(g_attributes[kAttributeZeroedOutBuffer], 1);
  }
  session.ChooseGraphNodes(true);
  EXPECT_FALSE(session.graph_nodes()) << "chosen by the first session, for good";
  EXPECT_EQ(g_kinds, kernels);
  session.Disarm();
  EXPECT_FALSE(session.parked());
  EXPECT_TRUE(g_kinds.empty());
  EXPECT_EQ(g_attributes[kAttributeZeroedOutBuffer], 0);
  EXPECT_EQ(g_attributes[kAttributePerThreadBuffer], per_thread);
  EXPECT_EQ(g_thread_ids, 0u);
}

TEST_P(CuptiSessionTest, AParkedOneLeavesNothingToAClientThatHasComeBetween) {
  const uint8_t per_thread = GetParam();
  g_attributes = {{kAttributeZeroedOutBuffer, 0}, {kAttributePerThreadBuffer, per_thread}};
  g_thread_ids = 0;
  g_kinds.clear();
  LoadedApi loaded = Willing(kVersion130);
  const CallTable calls;
  Session session(loaded, calls);
  ASSERT_EQ(session.Arm(/*late=*/false), "");
  session.Park();
  EXPECT_TRUE(session.was_parked());
  loaded.api.Subscribe = [](Subscriber*, CallbackFunction, void*) -> Result {
    return kErrorMultipleSubscribers;
  };
  EXPECT_NE(session.Arm(/*late=*/true), "");
  EXPECT_TRUE(session.owned_by_other());
  EXPECT_FALSE(session.was_parked());
  EXPECT_TRUE(g_kinds.empty());
  EXPECT_EQ(g_attributes[kAttributeZeroedOutBuffer], 0);
}

INSTANTIATE_TEST_SUITE_P(BuffersPerThread, CuptiSessionTest, testing::Values(0, 1));

}  // namespace
}  // namespace ranktap::agent::cupti
