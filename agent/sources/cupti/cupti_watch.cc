// The watch.
// Runs on: see cupti_watch.h; what is put before CUPTI's functions on the arming and drain threads.
// May not: read a clock by a system call, once for each of 1,300 callback ids that are enabled.
#include "agent/sources/cupti/cupti_watch.h"

#include <time.h>

#include <atomic>
#include <string>
#include <type_traits>

#include "agent/core/announcements.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"

namespace ranktap::agent::cupti {
namespace {

// One at a time: sessions are made by one thread (cupti_session.h).
constinit std::atomic<const char*> g_function{nullptr};
constinit std::atomic<uint64_t> g_since_ns{0};

class UnderWatch {
 public:
  explicit UnderWatch(const char* function) {
    g_since_ns.store(ClockNs(CLOCK_MONOTONIC_COARSE), std::memory_order_relaxed);
    g_function.store(function, std::memory_order_release);
  }
  ~UnderWatch() { g_function.store(nullptr, std::memory_order_release); }
  UnderWatch(const UnderWatch&) = delete;
  UnderWatch& operator=(const UnderWatch&) = delete;
};

template <auto kMember, typename Function>
struct Watched;

template <auto kMember, typename... Arguments>
struct Watched<kMember, Result (*)(Arguments...)> {
  using Real = Result (*)(Arguments...);
  static inline Real real = nullptr;
  static inline const char* name = nullptr;

  static Result Call(Arguments... arguments) {
    const UnderWatch watch(name);
    return real(arguments...);
  }
};

template <auto kMember>
void Watch(Api& api, const char* name) {
  using Function = std::remove_reference_t<decltype(api.*kMember)>;
  if (api.*kMember == nullptr) return;
  Watched<kMember, Function>::real = api.*kMember;
  Watched<kMember, Function>::name = name;
  api.*kMember = &Watched<kMember, Function>::Call;
}

}  // namespace

void WatchCalls(Api& api) {
  Watch<&Api::Subscribe>(api, "cuptiSubscribe");
  Watch<&Api::Unsubscribe>(api, "cuptiUnsubscribe");
  Watch<&Api::EnableCallback>(api, "cuptiEnableCallback");
  Watch<&Api::ActivityRegisterCallbacks>(api, "cuptiActivityRegisterCallbacks");
  Watch<&Api::ActivityEnable>(api, "cuptiActivityEnable");
  Watch<&Api::ActivityEnableAndDump>(api, "cuptiActivityEnableAndDump");
  Watch<&Api::ActivityDisable>(api, "cuptiActivityDisable");
  Watch<&Api::ActivityFlushAll>(api, "cuptiActivityFlushAll");
  Watch<&Api::ActivitySetAttribute>(api, "cuptiActivitySetAttribute");
  Watch<&Api::SetThreadIdType>(api, "cuptiSetThreadIdType");
  Watch<&Api::ActivityEnableRuntimeApi>(api, "cuptiActivityEnableRuntimeApi");
  Watch<&Api::ActivityEnableDriverApi>(api, "cuptiActivityEnableDriverApi");
  Watch<&Api::ActivityEnableHWTrace>(api, "cuptiActivityEnableHWTrace");
}

void NoteHang() {
  constexpr uint64_t kPatience = 5'000'000'000;
  static std::atomic<const char*> noted{nullptr};
  const char* const function = g_function.load(std::memory_order_acquire);
  if (function == nullptr) return;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC_COARSE), since = g_since_ns.load();
  if (now < since + kPatience || g_function.load() != function) return;
  if (noted.exchange(function) == function) return;
  const std::string note =
      std::string("CUPTI hangs in ") + function + ": a call of ours has lasted longer than 5 s";
  Log(note);
  AnnounceNote(note);
}

}  // namespace ranktap::agent::cupti
