#include "tests/fakes/cudart/runtime_call.h"

#include "tests/fakes/cudart/registry.h"

namespace ranktap::standin {

// Before anything else: in a fork child even a lock is too much.
const char* KernelSymbol(const void* host_function) {
  const Driver* driver = FindDriver();
  if (driver == nullptr || driver->machine->in_forked_child()) return nullptr;
  return RegisteredName(host_function);
}

const char* KernelSymbol(cudaKernel_t kernel) {
  const Driver* driver = FindDriver();
  if (driver == nullptr || driver->machine->in_forked_child()) return nullptr;
  return driver->machine->function_name(reinterpret_cast<CUfunction>(kernel));
}

RuntimeCall::RuntimeCall(uint32_t cbid, const char* name, const void* params, bool per_thread,
                         const char* symbol)
    : driver_(FindDriver()) {
  if (driver_ == nullptr) {
    refusal_ = cudaErrorInsufficientDriver;
    return;
  }
  // Before the entry callback: the tool injected by the first call sees that call too.
  CUresult initialized = driver_->machine->initialize();
  if (driver_->machine->in_forked_child()) {
    refusal_ = cudaErrorInitializationError;
    return;
  }
  call_.domain = ApiDomain::kRuntime;
  call_.cbid = cbid;
  call_.name = name;
  call_.params = params;
  call_.symbol = symbol;
  outer_per_thread_ = t_per_thread_default;
  if (!driver_->machine->begin_call(call_)) {
    refusal_ = cudaErrorInitializationError;
    return;
  }
  open_ = true;
  t_per_thread_default = per_thread;
  int scripted;
  if (driver_->machine->take_failure(name, &scripted)) {
    refusal_ = static_cast<cudaError_t>(scripted);
  } else if (initialized != CUDA_SUCCESS) {
    refusal_ = ToRuntime(initialized);
  } else {
    admitted_ = true;
  }
}

RuntimeCall::~RuntimeCall() {
  if (!open_) return;
  t_per_thread_default = outer_per_thread_;
  driver_->machine->abandon_call(call_);
}

cudaError_t RuntimeCall::Refuse() {
  driver_->machine->note_refusal(call_.name);
  return cudaErrorNotSupported;
}

cudaError_t RuntimeCall::Finish(cudaError_t result) {
  if (result != cudaSuccess) LastError() = result;
  return FinishErrorQuery(result);
}

cudaError_t RuntimeCall::FinishErrorQuery(cudaError_t result) {
  if (!open_) return result;
  result_ = result;
  call_.result = &result_;
  t_per_thread_default = outer_per_thread_;
  driver_->machine->end_call(call_);
  open_ = false;
  return result_;
}

int RuntimeCall::RefuseUntraced(const char* name) {
  if (const Driver* driver = FindDriver()) driver->machine->note_refusal(name);
  LastError() = cudaErrorNotSupported;
  return cudaErrorNotSupported;
}

cudaError_t& LastError() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

int& CurrentDevice() {
  static thread_local int device = 0;
  return device;
}

cudaError_t EnsureContext() {
  const Driver& driver = TheDriver();
  if (driver.machine->current_context() != nullptr) return cudaSuccess;
  CUcontext context;
  RETURN_IF_ERROR(driver.cuDevicePrimaryCtxRetain(&context, CurrentDevice()));
  return ToRuntime(driver.cuCtxSetCurrent(context));
}

}  // namespace ranktap::standin
