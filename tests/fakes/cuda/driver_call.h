// One call of the driver API: opens and closes the traced call around a `sim_` function. Used by
// the generated entries only.
#pragma once

#include <cuda.h>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

const char* KernelSymbol(CUfunction function);

class DriverCall {
 public:
  DriverCall(uint32_t cbid, const char* name, const void* params, bool per_thread,
             const char* symbol = nullptr);
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
  // A tool's callback may throw through: the call is then over without its exit callback.
  ~DriverCall();

  bool admitted() const { return admitted_; }
  CUresult refusal() const { return refusal_; }
  CUresult Refuse();
  CUresult Finish(CUresult result);
  static int RefuseUntraced(const char* name);

 private:
  ApiCall call_{};
  CUresult result_ = CUDA_SUCCESS;
  CUresult refusal_ = CUDA_SUCCESS;
  bool admitted_ = false;
  bool open_ = false;
  bool outer_per_thread_ = false;
};

}  // namespace ranktap::standin
