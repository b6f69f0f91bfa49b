// One subscription of CUPTI's for us and for the program's own client.
#include "agent/sources/cupti/cupti_broker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <utility>

#include "agent/sources/cupti/cupti_callbacks.h"
#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent::cupti {
namespace {

// A CUPTI that has one subscription and twenty ids in each domain.
struct Cupti {
  bool is_subscribed = false;
  std::set<std::pair<uint32_t, uint32_t>> enabled;
};
Cupti g_cupti;
// Threads inside CUPTI at a time, and how often there was a second.
std::atomic<int> g_inside{0}, g_overlaps{0};
class Inside {
 public:
  Inside() {
    if (g_inside.fetch_add(1) != 0) ++g_overlaps;
    std::this_thread::yield();
  }
  ~Inside() { g_inside.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};
constexpr uint32_t kIds = 20, kLaunch = 1, kOther = 2;
constexpr auto kRuntime = static_cast<uint32_t>(Domain::kRuntime),
               kResource = static_cast<uint32_t>(Domain::kResource);

Result Subscribe(Subscriber* subscriber, CallbackFunction, void*) {
  if (g_cupti.is_subscribed) return kErrorMultipleSubscribers;
  g_cupti.is_subscribed = true;
  *subscriber = &g_cupti;
  return kSuccess;
}
Result Unsubscribe(Subscriber) {
  g_cupti = {};
  return kSuccess;
}
Result EnableCallback(uint32_t enable, Subscriber, uint32_t domain, uint32_t cbid) {
  if (cbid >= kIds) return kErrorInvalidParameter;
  const Inside inside;
  if (enable != 0) g_cupti.enabled.insert({domain, cbid});
  if (enable == 0) g_cupti.enabled.erase({domain, cbid});
  return kSuccess;
}
Result EnableDomain(uint32_t enable, Subscriber, uint32_t domain) {
  const Inside inside;
  for (uint32_t cbid = 1; cbid < kIds && enable != 0; ++cbid)
    g_cupti.enabled.insert({domain, cbid});
  return kSuccess;
}
Result GetCallbackState(uint32_t* enable, Subscriber, uint32_t domain, uint32_t cbid) {
  const Inside inside;
  *enable = g_cupti.enabled.contains({domain, cbid}) ? 1 : 0;
  return kSuccess;
}

// The client writes a word into each call, and expects it back.
int g_calls = 0, g_resources = 0, g_spoilt = 0;
constexpr uint64_t kWord = 0x5eed;
void OnClient(void*, uint32_t domain, uint32_t, const void* data) {
  if (domain != kRuntime) {
    ++g_resources;
    return;
  }
  const auto& call = *static_cast<const ApiCallbackData*>(data);
  if (call.site == Site::kEnter) {
    *call.correlation_data = kWord;
    return;
  }
  ++g_calls;
  if (*call.correlation_data != kWord) ++g_spoilt;
}

void Raise(Site site, uint32_t cbid, uint64_t& word) {
  if (!g_cupti.enabled.contains({kRuntime, cbid})) return;
  ApiCallbackData call{};
  call.site = site;
  call.correlation_data = &word;
  call.correlation_id = 1;
  OnCallback(nullptr, kRuntime, cbid, &call);
}

void MakeCall(uint32_t cbid) {
  uint64_t word = 0;
  Raise(Site::kEnter, cbid, word);
  Raise(Site::kExit, cbid, word);
}

class CuptiBrokerTest : public Rings {
 protected:
  void SetUp() override {
    g_calls = g_resources = g_spoilt = 0;
    api_ = {
        .Subscribe = &Subscribe, .Unsubscribe = &Unsubscribe, .EnableCallback = &EnableCallback};
    api_.GetCallbackName = [](uint32_t domain, uint32_t cbid, const char** name) -> Result {
      *name = "cudaLaunchKernel_v7000";
      return domain == kRuntime && cbid == kLaunch ? kSuccess : kErrorInvalidParameter;
    };
    calls_.Build(api_, *arena_);
    g_callbacks.api = &api_;
    g_callbacks.calls = &calls_;
    broker::TakePlace(api_, {.EnableDomain = &EnableDomain, .GetCallbackState = &GetCallbackState});
  }
  void TearDown() override {
    EXPECT_EQ(g_spoilt, 0);
    EXPECT_FALSE(g_cupti.is_subscribed);
  }

  Subscriber SubscribeUs() {
    Subscriber ours = nullptr;
    EXPECT_EQ(api_.Subscribe(&ours, &OnCallback, nullptr), kSuccess);
    EXPECT_EQ(api_.EnableCallback(1, ours, kRuntime, kLaunch), kSuccess);
    return ours;
  }
  static Subscriber SubscribeClient() {
    Subscriber theirs = nullptr;
    EXPECT_EQ(broker::SubscribeClient(&theirs, &OnClient, nullptr), kSuccess);
    return theirs;
  }

  static inline Api api_{};
  static inline CallTable calls_;
};

TEST_F(CuptiBrokerTest, TheClientAndWeHearOfACallEachWithAWordOfItsOwn) {
  const Subscriber ours = SubscribeUs(), theirs = SubscribeClient();
  EXPECT_EQ(broker::EnableCallbackForClient(1, kRuntime, kLaunch), kSuccess);
  SetCapture(kCaptureCuda);
  OnNewThread([](ThreadState& thread) {
    MakeCall(kLaunch);
    MakeCall(kLaunch);
    EXPECT_EQ(thread.produced(), 2u);
  });
  ClearCapture(kCaptureCuda);
  EXPECT_EQ(g_calls, 2);
  EXPECT_EQ(api_.Unsubscribe(ours), kSuccess);
  EXPECT_TRUE(broker::IsClients(theirs));
  EXPECT_EQ(broker::UnsubscribeClient(), kSuccess);
}

TEST_F(CuptiBrokerTest, EitherMayGoFirstAndTheOtherKeepsItsCallbacks) {
  Subscriber ours = SubscribeUs();
  Subscriber theirs = SubscribeClient();
  EXPECT_EQ(broker::EnableCallbackForClient(1, kRuntime, kOther), kSuccess);
  EXPECT_EQ(api_.Unsubscribe(ours), kSuccess);
  EXPECT_EQ(g_cupti.enabled, (std::set<std::pair<uint32_t, uint32_t>>{{kRuntime, kOther}}));
  ours = SubscribeUs();
  EXPECT_EQ(broker::UnsubscribeClient(), kSuccess);
  EXPECT_FALSE(broker::IsClients(theirs));
  EXPECT_EQ(g_cupti.enabled, (std::set<std::pair<uint32_t, uint32_t>>{{kRuntime, kLaunch}}));
  EXPECT_FALSE(broker::ClientListens(kRuntime));
  EXPECT_EQ(api_.Unsubscribe(ours), kSuccess);
}

TEST_F(CuptiBrokerTest, AWholeDomainOfTheClientsOnAndOffLeavesOurs) {
  const Subscriber ours = SubscribeUs();
  SubscribeClient();
  EXPECT_EQ(broker::EnableDomainForClient(1, kRuntime), kSuccess);
  EXPECT_EQ(broker::EnableDomainForClient(1, kResource), kSuccess);
  uint32_t on = 0;
  EXPECT_EQ(broker::GetCallbackStateForClient(&on, kRuntime, kOther), kSuccess);
  EXPECT_EQ(on, 1u);
  MakeCall(kOther);
  EXPECT_EQ(g_calls, 1);
  EXPECT_EQ(broker::EnableDomainForClient(0, kRuntime), kSuccess);
  EXPECT_EQ(broker::EnableDomainForClient(0, kResource), kSuccess);
  EXPECT_EQ(g_cupti.enabled, (std::set<std::pair<uint32_t, uint32_t>>{{kRuntime, kLaunch}}));
  MakeCall(kLaunch);
  EXPECT_EQ(g_calls, 1);
  EXPECT_EQ(broker::GetCallbackStateForClient(&on, kRuntime, kLaunch), kSuccess);
  EXPECT_EQ(on, 0u) << "that one is ours alone";
  EXPECT_EQ(broker::UnsubscribeClient(), kSuccess);
  EXPECT_EQ(api_.Unsubscribe(ours), kSuccess);
}

// A window ends on our thread while the client starts a session on its own. CUPTI's header calls
// the result undefined where two of these calls are made at once.
TEST_F(CuptiBrokerTest, ThreadsCallCuptiOneAfterTheOtherAndWhatEitherWantsIsOn) {
  constexpr int kTimes = 2000;
  const Subscriber ours = SubscribeUs();
  SubscribeClient();
  g_overlaps = 0;
  std::barrier start(2);
  std::thread window([&] {
    start.arrive_and_wait();
    for (int i = 0; i < kTimes; ++i) api_.EnableCallback(i % 2, ours, kRuntime, kLaunch);
  });
  start.arrive_and_wait();
  for (int i = 0; i < kTimes; ++i) {
    uint32_t on = 0;
    broker::EnableCallbackForClient(1, kRuntime, kLaunch);
    broker::GetCallbackStateForClient(&on, kRuntime, kLaunch);
    EXPECT_EQ(on, 1u);
    broker::EnableDomainForClient(i % 2, kResource);
    if (i + 1 < kTimes) broker::EnableCallbackForClient(0, kRuntime, kLaunch);
  }
  window.join();
  EXPECT_EQ(g_overlaps, 0);
  EXPECT_TRUE(g_cupti.enabled.contains({kRuntime, kLaunch}));
  EXPECT_EQ(broker::UnsubscribeClient(), kSuccess);
  EXPECT_EQ(api_.Unsubscribe(ours), kSuccess);
}

TEST_F(CuptiBrokerTest, ASecondClientIsRefusedByCuptiItself) {
  SubscribeClient();
  Subscriber second = nullptr;
  EXPECT_EQ(broker::SubscribeClient(&second, &OnClient, nullptr), kErrorMultipleSubscribers);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(broker::UnsubscribeClient(), kSuccess);
}

}  // namespace
}  // namespace ranktap::agent::cupti
