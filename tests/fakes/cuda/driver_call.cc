#include "tests/fakes/cuda/driver_call.h"

#include <string.h>

#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/function.h"
#include "tests/fakes/machine/script.h"
#include "tests/fakes/machine/truth_log.h"

namespace ranktap::standin {
namespace {

// What may be asked of a driver that nobody has initialised.
bool NeedsNoInit(const char* name) {
  static const char* const kFree[] = {"cuInit", "cuDriverGetVersion", "cuGetProcAddress",
                                      "cuGetErrorString", "cuGetErrorName"};
  for (const char* free : kFree) {
    if (strncmp(name, free, strlen(free)) == 0) return true;
  }
  return false;
}

}  // namespace

// Before anything else: in a fork child even a lock is too much.
const char* KernelSymbol(CUfunction function) {
  if (InForkedChild()) return nullptr;
  const Function* known = AsFunction(function);
  return known == nullptr ? nullptr : known->name;
}

DriverCall::DriverCall(uint32_t cbid, const char* name, const void* params, bool per_thread,
                       const char* symbol) {
  call_.domain = ApiDomain::kDriver;
  call_.cbid = cbid;
  call_.name = name;
  call_.params = params;
  call_.symbol = symbol;
  if (InForkedChild() || (!Initialized() && !NeedsNoInit(name))) {
    refusal_ = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  ThreadState& thread = CurrentThread();
  outer_per_thread_ = thread.per_thread_default;
  if (!BeginCall(call_)) {
    refusal_ = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  open_ = true;
  thread.per_thread_default = per_thread;
  int scripted;
  if (TakeScriptedFailure(name, &scripted)) {
    refusal_ = static_cast<CUresult>(scripted);
    return;
  }
  admitted_ = true;
}

DriverCall::~DriverCall() {
  if (!open_) return;
  CurrentThread().per_thread_default = outer_per_thread_;
  AbandonCall(call_);
}

CUresult DriverCall::Refuse() {
  LogRefusal(call_.name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult DriverCall::Finish(CUresult result) {
  if (!open_) return result;
  result_ = result;
  call_.result = &result_;
  CurrentThread().per_thread_default = outer_per_thread_;
  EndCall(call_);
  open_ = false;
  return result_;
}

int DriverCall::RefuseUntraced(const char* name) {
  LogRefusal(name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace ranktap::standin
