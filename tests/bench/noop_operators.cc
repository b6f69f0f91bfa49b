// Callbacks at at::RecordFunction that ask for inputs and do nothing: what PyTorch itself takes for
// any profiler with shapes, the floor of ours. torch_loop.py loads it and calls Begin.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <memory>

namespace {

// As agent/sources/torch/torch_operators.cc has them.
struct Context {
  virtual ~Context() = default;
};
struct Callback {
  std::unique_ptr<Context> (*start)(const void* function);
  void (*end)(const void* function, Context* context);
  double probability = 1.0;
  std::array<bool, 10> scopes{};
  bool needs_inputs = true;
  bool needs_outputs = false;
  bool needs_ids = false;
};

std::unique_ptr<Context> OnStart(const void*) { return nullptr; }
void OnEnd(const void*, Context*) {}

std::array<uint64_t, 3> g_handles{};

template <typename Function>
Function Find(const char* symbol) {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, symbol));
}

}  // namespace

// 1: from now on, until End, the operators of this thread call them. `outputs`: and are asked what
// they return.
extern "C" __attribute__((visibility("default"))) int Begin(bool inputs, bool backward,
                                                            bool outputs) {
  const auto add =
      Find<uint64_t (*)(Callback)>("_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
  if (add == nullptr) return 0;
  size_t at = 0;
  for (const auto scopes : {std::array{0, 2}, std::array{7, 7}, std::array{1, 1}}) {
    if (scopes[0] == 1 && !backward) break;
    Callback callback{.start = &OnStart, .end = &OnEnd, .needs_inputs = inputs};
    callback.needs_outputs = callback.needs_ids = outputs;
    for (const int scope : scopes) callback.scopes[static_cast<size_t>(scope)] = true;
    g_handles[at++] = add(callback);
  }
  return 1;
}

extern "C" __attribute__((visibility("default"))) void End() {
  const auto remove = Find<void (*)(uint64_t)>("_ZN2at14removeCallbackEm");
  for (uint64_t& handle : g_handles) {
    if (handle != 0 && remove != nullptr) remove(handle);
    handle = 0;
  }
}
