// The things that happen to matrix.cc. Each is the same bare and traced, as far as a program can
// see.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace matrix {

extern unsigned g_seed;

inline void Work(int ranges) {
  for (int i = 0; i < ranges; ++i) {
    nvtxRangePushA("range");
    nvtxRangePop();
  }
}

void Say(const char* what, int number);

void OpenCuda();
void WorkWithCuda();  // where it is open

void Signals();
void LongJump();
void Cancel();
void BlockEverySignal();
void TrapEveryFloat();
void CloseEveryDescriptor();
void ExhaustDescriptors();
void LoseProc();
void Child(const char* how);
void Exec();
void EndBySignal(bool by_raise);
void LeaveMain();
void RawExitGroup();
bool FailCall(const std::string& call, unsigned error);
bool Limit(const std::string& resource, unsigned long value);

}  // namespace matrix
