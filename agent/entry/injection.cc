// The exported entry points (exports.map), called by the stub (agent/stub). C code without unwind
// tables calls them: no exception may leave. Runs on: the loader (the constructor), the thread
// inside cuInit, the thread of an object's first NVTX call.  May not: in the constructor do
// anything but look at the environment.
#include "agent/entry/injection.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "agent/core/agent_config.h"
#include "agent/core/contain.h"
#include "agent/entry/lifecycle.h"
#include "agent/entry/process_rank.h"
#include "agent/sources/nvtx/nvtx_source.h"
#include "agent/sources/torch/python_injection.h"

extern char** environ;

// agent/stub/nvtx_thunks.c has room for so many.
static_assert(NVTX_CB_MODULE_SIZE == 7 && NVTX_CBID_CORE_SIZE <= 16 && NVTX_CBID_CORE2_SIZE <= 16 &&
              NVTX_CBID_CUDA_SIZE <= 16 && NVTX_CBID_CUDART_SIZE <= 16 &&
              NVTX_CBID_OPENCL_SIZE <= 16 && NVTX_CBID_SYNC_SIZE <= 16);
static_assert(NVTX_CBID_CORE_RangePushEx == 8 && NVTX_CBID_CORE_RangePop == 11 &&
              NVTX_CBID_CORE2_DomainRangePushEx == 4 && NVTX_CBID_CORE2_DomainRangePop == 5 &&
              NVTX_NO_PUSH_POP_TRACKING == -2 && NVTX_ETID_CALLBACKS == 1);

namespace ranktap::agent {
namespace {

constinit proto::LoadedBy g_loaded_by = proto::LoadedBy::kEnvironment;

bool WantsPython() {
  const char* wanted = std::getenv("RANKTAP_PYTHON");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

bool WantsSamples() {
  const char* period = std::getenv("RANKTAP_SAMPLE_US");
  return period != nullptr && std::atoi(period) > 0;
}

// When the stub opens this library. No thread, no descriptor, no allocation.
__attribute__((constructor)) void OnLoad() {
  const char* preload = std::getenv("LD_PRELOAD");
  if (preload != nullptr && std::strstr(preload, "libranktap.so") != nullptr) {
    g_loaded_by = proto::LoadedBy::kPreload;
  }
}

}  // namespace

proto::LoadedBy AgentLoadedBy() { return g_loaded_by; }

}  // namespace ranktap::agent

namespace {

// A thread that was cancelled in here would leave NVTX's start half done, and every later thread
// would wait for it: our start makes calls in which threads are cancelled.
template <typename F>
int Enter(F&& enter) {
  int cancellable = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
  const int result = ranktap::agent::Contain(0, enter);
  pthread_setcancelstate(cancellable, nullptr);
  return result;
}

}  // namespace

// The stub in LD_PRELOAD, before main, in a Python program that is to be recorded at level full.
extern "C" RANKTAP_EXPORT void RanktapBeforeMain() {
  using ranktap::agent::WantsPython;
  using ranktap::agent::WantsSamples;
  if (ranktap::agent::DisabledByEnvironment(environ) || (!WantsPython() && !WantsSamples())) return;
  ranktap::agent::InstallPythonInjection({.hooks_torch = WantsPython(),
                                          .starts_with_program = WantsSamples(),
                                          .start = &ranktap::agent::StartOnce,
                                          .refresh_rank = &ranktap::agent::RefreshRankIdentity,
                                          .tell_rank = &ranktap::agent::TellRank});
}

// The driver does not care much what we return; 0 says "no profile".
extern "C" RANKTAP_EXPORT int InitializeInjection() {
  return Enter([] {
    if (!ranktap::agent::StartOnce()) return 0;
    ranktap::agent::OnCudaInit();
    return 1;
  });
}

// NVTX 2 and 3. 0 makes NVTX turn its functions into no-ops.
extern "C" RANKTAP_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  return Enter([get_export_table] {
    return ranktap::agent::StartOnce() && ranktap::agent::InstallNvtxHandlers(get_export_table) ? 1
                                                                                                : 0;
  });
}

// NVTX 1 looks for this name; its tables are the same.
extern "C" RANKTAP_EXPORT int InitializeInjectionNvtx(NvtxGetExportTableFunc_t get_export_table) {
  return InitializeInjectionNvtx2(get_export_table);
}

extern "C" RANKTAP_EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  return Enter([module] {
    return ranktap::agent::StartOnce() && ranktap::agent::InstallNvtxExtension(module) ? 1 : 0;
  });
}
