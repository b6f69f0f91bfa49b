// Coming and going while the program launches, a second client, buffers that come late, and
// launches by the driver alone.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

// The longest of its bodies.
class Longest {
 public:
  template <typename Body>
  void Take(Body&& body) {
    const uint64_t begin = MonotonicNs();
    body();
    ns_ = std::max(ns_, MonotonicNs() - begin);
  }
  void TakeNs(uint64_t ns) { ns_ = std::max(ns_, ns); }
  int64_t us() const { return static_cast<int64_t>(ns_) / 1000; }

 private:
  uint64_t ns_ = 0;
};

// A function of the driver's, which is mapped.
template <typename Function>
Function* Driver(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(driver, name));
}

// A kernel that the runtime knows nothing of.
void* LoadKernel() {
  constexpr const char* kPtx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry alone()\n{\n  ret;\n}\n";
  void *module = nullptr, *kernel = nullptr;
  Say("load", Driver<int(void**, const void*)>("cuModuleLoadData")(&module, kPtx));
  Say("find",
      Driver<int(void**, void*, const char*)>("cuModuleGetFunction")(&kernel, module, "alone"));
  return kernel;
}

}  // namespace

// Does every kernel have the id of the driver's call, and which name has that call?
void AskDriverLaunches(int launches) {
  using Launcher = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**);
  void* const kernel = LoadKernel();
  auto* const launch = Driver<Launcher>("cuLaunchKernel");
  Seen seen;
  Watch(&seen);
  if (!Subscribe(Calls::kBoth)) return;
  Enable(Kind::kConcurrentKernel);
  for (int i = 0; i < launches; ++i)
    launch(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  int64_t joined = 0, others = 0;
  for (const KernelRecord& record : Kernels(TakeRecords(false))) {
    const auto call = seen.outermost.find(record.correlation);
    ++(call != seen.outermost.end() && call->second.driver ? joined : others);
  }
  Say("joined", joined);
  Say("others", others);
  Say("callbacks", static_cast<int64_t>(seen.calls));
  Say("function", seen.name == nullptr ? "" : seen.name);
}

// When do the buffers come that a flush hands out, and on which thread?
void AskLateBuffers(int launches) {
  if (!Subscribe(Calls::kNone)) return;
  Enable(Kind::kConcurrentKernel);
  Longest forced, plain;
  int64_t late = 0, on_other_threads = 0;
  for (int round = 0; round < 10; ++round) {
    Launch(std::max(1, launches / 10));
    const Returned returned = FlushAndWatch(/*forced=*/round % 2 == 1);
    late += returned.late_ns > 0 ? 1 : 0;
    on_other_threads += returned.on_other_thread ? 1 : 0;
    (round % 2 == 1 ? forced : plain).TakeNs(returned.late_ns);
  }
  Say("flushes", 10);
  Say("with_buffers_after_it", late);
  Say("on_other_threads", on_other_threads);
  Say("latest_us", plain.us());
  Say("latest_forced_us", forced.us());
}

void AskWindows(int launches) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      Launch(100);
      cudaDeviceSynchronize();
    }
  });
  Longest on, disable, flush, off;
  const int windows = std::clamp(launches / 20, 3, 50);
  size_t records = 0;
  for (int i = 0; i < windows; ++i) {
    on.Take([] {
      if (Subscribe(Calls::kBoth)) Enable(Kind::kConcurrentKernel);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    disable.Take([] { Disable(Kind::kConcurrentKernel); });
    flush.Take([] { (void)Cupti().api.ActivityFlushAll(kFlushForced); });
    off.Take([] { Unsubscribe(); });
    records += TakeRecords(true).size();
  }
  stop = true;
  busy.join();
  Say("windows", windows);
  Say("records", static_cast<int64_t>(records));
  Say("longest_on_us", on.us());
  Say("longest_disable_us", disable.us());
  Say("longest_flush_us", flush.us());
  Say("longest_unsubscribe_us", off.us());
}

void AskSecondSubscriber(int) {
  if (!Subscribe(Calls::kBoth)) return;
  Subscriber second = nullptr;
  Say("second", Cupti().api.Subscribe(
                    &second, [](void*, uint32_t, uint32_t, const void*) {}, nullptr));
  Enable(Kind::kConcurrentKernel);
  Launch(5);
  Say("kernels", static_cast<int64_t>(Kernels(TakeRecords(false)).size()));
}

}  // namespace ranktap::gpu
