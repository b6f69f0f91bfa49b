// CUPTI's second API: may we be one of several subscribers beside a client with records of its own
// shape, and come and go while the other stays?
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/second_api.h"

namespace ranktap::gpu {
namespace {

using Handle = CUpti_SubscriberHandle;

struct Functions {
  int (*Subscribe_v2)(Handle*, CUpti_CallbackFunc, void*, second_api::SubscriberParams*);
  int (*ActivitySetAttribute_v2)(Handle, int, size_t*, void*);
  int (*ActivityRegisterCallbacks_v2)(Handle, second_api::BufferRequested,
                                      second_api::BufferCompleted);
  int (*ActivityEnable_v2)(Handle, uint32_t, second_api::ActivityConfig*);
  int (*ActivityDisable_v2)(Handle, uint32_t, second_api::ActivityConfig*);
  int (*ActivityGetNextRecord_v2)(Handle, uint8_t*, size_t, CUpti_Activity**);
} g_functions;

bool FindAll() {
  void* library = dlopen(Cupti().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto find = [library](const char* name, auto*& function) {
    return (*reinterpret_cast<void**>(&function) = dlsym(library, name)) != nullptr;
  };
#define FIND(name) find("cupti" #name, g_functions.name)
  return FIND(Subscribe_v2) && FIND(ActivitySetAttribute_v2) &&
         FIND(ActivityRegisterCallbacks_v2) && FIND(ActivityEnable_v2) &&
         FIND(ActivityDisable_v2) && FIND(ActivityGetNextRecord_v2);
#undef FIND
}

// One of two subscribers. Its buffers' callbacks know nothing of it: each has its own.
struct Client {
  const char* name;
  bool user_defined;
  second_api::BufferCompleted completed;
  Handle handle = nullptr;
  std::atomic<int64_t> kernels{0}, untimed{0}, calls{0}, changed_words{0};
};

void Count(Client& client, uint8_t* buffer, size_t valid, const second_api::CompleteInfo& info) {
  CUpti_Activity* record = nullptr;
  while (g_functions.ActivityGetNextRecord_v2(client.handle, buffer, valid, &record) == 0) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    ++client.kernels;
    uint64_t start = 0;
    size_t at = offsetof(CUpti_ActivityKernel10, start);
    if (client.user_defined) {
      const second_api::RecordLayout& layout = *info.layouts[record->kind];
      for (size_t i = 0; i < layout.count; ++i) {
        if (layout.entries[i].field == second_api::kKernelStart) at = layout.entries[i].offset;
      }
    }
    std::memcpy(&start, reinterpret_cast<uint8_t*>(record) + at, sizeof start);
    if (start == 0) ++client.untimed;
  }
  std::free(buffer);
}

Client g_theirs{
    .name = "theirs",
    .user_defined = true,
    .completed = [](uint8_t* buffer, size_t, size_t valid, second_api::CompleteInfo* info) {
      Count(g_theirs, buffer, valid, *info);
    }};
Client g_ours{
    .name = "ours",
    .user_defined = false,
    .completed = [](uint8_t* buffer, size_t, size_t valid, second_api::CompleteInfo* info) {
      Count(g_ours, buffer, valid, *info);
    }};

void OnRequested(uint8_t** buffer, size_t* size, size_t* most, second_api::RequestInfo*) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI OnCall(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  auto& client = *static_cast<Client*>(user);
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  const auto word = reinterpret_cast<uintptr_t>(user);
  if (call.callbackSite == CUPTI_API_ENTER) {
    *call.correlationData = word;
  } else {
    ++client.calls;
    if (*call.correlationData != word) ++client.changed_words;
  }
}

// What failed, with its result; empty where all went well.
std::string Begin(Client& client) {
  second_api::SubscriberParams parameters;
  parameters.name = client.name;
  parameters.allow_multiple = 1;
  if (int result = g_functions.Subscribe_v2(&client.handle, &OnCall, &client, &parameters)) {
    return "subscribe " + std::to_string(result);
  }
  uint8_t on = 1;
  size_t bytes = sizeof on;
  if (client.user_defined) {
    if (int result = g_functions.ActivitySetAttribute_v2(
            client.handle, second_api::kUserDefinedRecords, &bytes, &on)) {
      return "user-defined records " + std::to_string(result);
    }
  }
  if (int result =
          g_functions.ActivityRegisterCallbacks_v2(client.handle, &OnRequested, client.completed)) {
    return "buffers " + std::to_string(result);
  }
  std::array<int, 4> fields = {0, second_api::kKernelStart, second_api::kKernelEnd,
                               second_api::kKernelCorrelation};
  second_api::ActivityConfig config;
  config.selection.count = fields.size();
  config.selection.fields = fields.data();
  if (int result =
          g_functions.ActivityEnable_v2(client.handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        client.user_defined ? &config : nullptr)) {
    return "kernels " + std::to_string(result);
  }
  for (uint32_t cbid = 1; cbid < 1200; ++cbid) {
    const char* name = nullptr;
    if (Cupti().api.GetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, &name) == 0 &&
        name != nullptr && std::strstr(name, "LaunchKernel") != nullptr) {
      Cupti().api.EnableCallback(1, client.handle, CUPTI_CB_DOMAIN_RUNTIME_API, cbid);
    }
  }
  return {};
}

void End(Client& client) {
  g_functions.ActivityDisable_v2(client.handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr);
  Cupti().api.Unsubscribe(client.handle);
}

void LaunchAndFlush(int launches) {
  Launch(launches);
  cudaDeviceSynchronize();
  (void)Cupti().api.ActivityFlushAll(0);
  // A beat later, says PyTorch's code.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

void Tell(const std::string& when, Client& client) {
  const std::string about = when + "_" + client.name + "_";
  Say(about + "kernels", client.kernels.exchange(0));
  Say(about + "untimed", client.untimed.exchange(0));
  Say(about + "calls", client.calls.exchange(0));
  Say(about + "changed_words", client.changed_words.exchange(0));
}

}  // namespace

// As the program's client comes first; it goes, and comes back while we are there; we go before it.
void AskSecondApi(int launches) {
  Say("there", FindAll() ? 1 : 0);
  if (!FindAll()) return;
  Say("launches", launches);
  Say("theirs_first", Begin(g_theirs));
  Say("ours_second", Begin(g_ours));
  LaunchAndFlush(launches);
  Tell("both", g_theirs);
  Tell("both", g_ours);
  End(g_theirs);
  LaunchAndFlush(launches);
  Tell("alone", g_ours);
  Say("theirs_again", Begin(g_theirs));
  LaunchAndFlush(launches);
  Tell("again", g_theirs);
  Tell("again", g_ours);
  End(g_ours);
  LaunchAndFlush(launches);
  Tell("left", g_theirs);
  End(g_theirs);
}

}  // namespace ranktap::gpu
