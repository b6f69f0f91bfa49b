#include "tests/fakes/machine/call.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/truth_log.h"

namespace ranktap::standin {
namespace {

std::atomic<const ToolHooks*> g_hooks{nullptr};
std::atomic<uint32_t> g_correlation{0};

// A page the kernel empties in a fork child, whichever way the child was made.
volatile bool* OwnershipPage() {
  static volatile bool* page = []() -> volatile bool* {
    void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    madvise(mapped, 4096, MADV_WIPEONFORK);
    return static_cast<volatile bool*>(mapped);
  }
  ();
  return page;
}

std::atomic<bool> g_claimed{false};

void ReadContext(ApiCall& call) {
  Context* context = CurrentThread().current();
  call.context = reinterpret_cast<CUcontext>(context);
  call.context_id = context == nullptr ? 0 : context->id;
}

int StatusOf(const ApiCall& call) {
  return call.result == nullptr ? 0 : *static_cast<const int*>(call.result);
}

}  // namespace

ThreadState& CurrentThread() {
  static thread_local ThreadState state;
  return state;
}

int32_t ThreadId() {
  ThreadState& thread = CurrentThread();
  if (thread.thread_id == 0) thread.thread_id = static_cast<int32_t>(syscall(SYS_gettid));
  return thread.thread_id;
}

bool InForkedChild() {
  if (!g_claimed.load(std::memory_order_relaxed)) return false;
  volatile bool* page = OwnershipPage();
  return page == nullptr || !*page;
}

void ClaimProcess() {
  if (volatile bool* page = OwnershipPage()) *page = true;
  g_claimed.store(true, std::memory_order_relaxed);
}

void SetHooks(const ToolHooks* hooks) { g_hooks.store(hooks, std::memory_order_release); }

const ToolHooks* Hooks() {
  const ToolHooks* hooks = g_hooks.load(std::memory_order_acquire);
  if (hooks == nullptr || CurrentThread().tool_callback_depth > 0) return nullptr;
  return hooks;
}

bool BeginCall(ApiCall& call) {
  if (InForkedChild()) return false;
  ThreadState& thread = CurrentThread();
  if (thread.tool_callback_depth > 0) {
    LogViolation("CUDA called from a tool's callback");
    LogViolation(call.name);
  }
  call.nested = thread.call_depth > 0;
  if (!call.nested) {
    thread.correlation = g_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
    thread.outer_domain = call.domain;
    thread.outer_cbid = call.cbid;
  }
  ++thread.call_depth;
  call.correlation = thread.correlation;
  call.thread_id = ThreadId();
  const ToolHooks* hooks = Hooks();
  if (hooks == nullptr && !TruthIsLogged()) return true;
  call.enter_raw_ns = RawNow();
  if (hooks == nullptr) return true;
  call.enter_device_ns = DeviceNow();
  ReadContext(call);
  // A callback that throws, or is cancelled, ends the call before it has begun.
  struct Entering {
    ApiCall* call;
    ~Entering() {
      if (call != nullptr) AbandonCall(*call);
    }
  } entering{&call};
  hooks->on_enter(call);
  entering.call = nullptr;
  return true;
}

void EndCall(ApiCall& call) {
  uint64_t exit_raw_ns = TruthIsLogged() ? RawNow() : 0;
  if (const ToolHooks* hooks = Hooks()) {
    ReadContext(call);
    hooks->on_exit(call);
  }
  --CurrentThread().call_depth;
  if (exit_raw_ns != 0) LogCall(call, exit_raw_ns, StatusOf(call));
}

void AbandonCall(ApiCall& call) {
  --CurrentThread().call_depth;
  if (TruthIsLogged()) LogCall(call, RawNow(), -1);
}

}  // namespace ranktap::standin
