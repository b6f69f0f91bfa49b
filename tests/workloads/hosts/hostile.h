// The parts of hostile.cc: programs that end, fork and lock themselves up in ways that few do.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace hostile {

// Each returns what main is to return, if it returns.
int LeaveMain(const char* how);
int ForkAtStart(const char* how, int threads);
int ForkLater(const char* how);
int LockUp(const char* how);
int OpenNamespaces(const char* plugin, int count);
int EnterUserNamespace();
int WorkWith(const char* how);
int LeaveWithoutProc();

inline void Mark() {
  nvtxRangePushA("range");
  nvtxRangePop();
}

}  // namespace hostile
