#include "tests/fakes/cupti/refusal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

// "function:ms,..."
void HangWhereTold(const char* function) {
  const size_t length = strlen(function);
  for (const char* at = Script().hang_in; at != nullptr;) {
    if (strncmp(at, function, length) == 0 && at[length] == ':') {
      usleep(static_cast<useconds_t>(strtoul(at + length + 1, nullptr, 10)) * 1000);
    }
    at = strchr(at, ',');
    if (at != nullptr) ++at;
  }
}

const MachineLink* FindMachine() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  auto get_table = reinterpret_cast<CUresult (*)(const void**, const CUuuid*)>(
      dlsym(library, "cuGetExportTable"));
  const void* table = nullptr;
  if (get_table == nullptr || get_table(&table, &kMachineUuid) != CUDA_SUCCESS) return nullptr;
  return static_cast<const MachineLink*>(table);
}

}  // namespace

const MachineLink* Machine() {
  static const MachineLink* machine = FindMachine();
  return machine;
}

int RefuseCupti(const char* function) {
  if (Machine() != nullptr) Machine()->note_refusal(function);
  return LastCuptiError() = CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult Admit(const char* function) {
  const MachineLink* machine = Machine();
  if (machine == nullptr) return CUPTI_ERROR_UNKNOWN;
  if (machine->in_forked_child()) {
    machine->note_violation("CUPTI called in a fork child");
    machine->note_violation(function);
    // What the real library does (seen as a child stuck in cuptiActivityFlushAll).
    if (Script().hang_in_fork_child) {
      for (;;) pause();
    }
    return CUPTI_ERROR_UNKNOWN;
  }
  HangWhereTold(function);
  int scripted;
  if (machine->take_failure(function, &scripted)) return static_cast<CUptiResult>(scripted);
  return CUPTI_SUCCESS;
}

CUptiResult AdmitFirstApi(const char* function) {
  const CUptiResult admitted = Admit(function);
  if (admitted != CUPTI_SUCCESS) return admitted;
  const bool is_refused = Script().one_api && TheSubscription().second_api.load();
  return is_refused ? CUPTI_ERROR_NOT_COMPATIBLE : CUPTI_SUCCESS;
}

CUptiResult& LastCuptiError() {
  static thread_local CUptiResult error = CUPTI_SUCCESS;
  return error;
}

}  // namespace ranktap::standin
