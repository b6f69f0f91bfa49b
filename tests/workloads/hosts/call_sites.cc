// Calls CUDA from twenty places of every shape, and says where they were: one line each,
//   site LINE CALLS FUNCTION[<FUNCTION...]
// with the functions that were inlined into each other, innermost first. Each call is not the last
// thing its function does, so that no jump takes its frame's place.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

struct Planted {
  int calls = 0;
  const char* functions = "";
};
std::map<int, Planted> planted;
volatile int status;

void plant(int line, const char* functions) {
  ++planted[line].calls;
  planted[line].functions = functions;
}

void keep(int value) { status = value; }

// One line, one call.
#define SITE(functions) plant(__LINE__, functions), keep(cudaDeviceSynchronize())

[[gnu::noinline]] void plain() { SITE("plain"); }

[[gnu::always_inline]] inline void inlined() { SITE("inlined<calls_inlined"); }
[[gnu::noinline]] void calls_inlined() { inlined(); }

[[gnu::always_inline]] inline void innermost() { SITE("innermost<middle<outermost"); }
[[gnu::always_inline]] inline void middle() { innermost(); }
[[gnu::noinline]] void outermost() { middle(); }

template <int kValue>
[[gnu::noinline]] void templated() {
  SITE("templated");
}

template <typename... Values>
[[gnu::always_inline]] inline void variadic(Values... values) {
  if (sizeof...(values) > 1) SITE("variadic<calls_variadic");
}
[[gnu::noinline]] void calls_variadic() { variadic(1, 2.0, "3"); }

struct Shape {
  virtual ~Shape() = default;
  virtual void draw() = 0;
};
struct Circle final : Shape {
  [[gnu::noinline]] Circle() { SITE("Circle"); }
  [[gnu::noinline]] ~Circle() override { SITE("~Circle"); }
  [[gnu::noinline]] void draw() override { SITE("draw"); }
};

struct Functor {
  [[gnu::noinline]] void operator()() const { SITE("operator()"); }
};

struct Outer {
  struct Inner {
    [[gnu::noinline]] static void nested() { SITE("nested"); }
  };
};

[[gnu::noinline]] void recursive(int depth) {
  if (depth > 0) {
    recursive(depth - 1);
    return keep(depth);
  }
  SITE("recursive");
}

[[gnu::noinline, gnu::cold]] void cold() { SITE("cold"); }

[[gnu::noinline]] void throws() { throw 1; }
[[gnu::noinline]] void catches() {
  try {
    throws();
  } catch (int) {
    SITE("catches");
  }
}

int compare(const void*, const void*) {
  SITE("compare");
  return 0;
}
[[gnu::noinline]] void sorts() {
  int values[2] = {1, 2};
  std::qsort(values, 2, sizeof(int), &compare);
  status = values[0];
}

[[gnu::noinline]] void large_frame() {
  volatile char bytes[32768];
  bytes[0] = 1;
  SITE("large_frame");
  status = bytes[0];
}

[[gnu::noinline]] void aligned_frame() {
  alignas(64) volatile double values[16];
  values[3] = 1;
  SITE("aligned_frame");
  status = static_cast<int>(values[3]);
}

[[gnu::noinline]] void variable_frame(int bytes) {
  auto* const memory = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(bytes)));
  memory[bytes - 1] = 2;
  SITE("variable_frame");
  status = memory[bytes - 1];
}

[[gnu::noinline]] void on_thread() { SITE("on_thread"); }

}  // namespace

extern "C" [[gnu::noinline]] void c_function() { SITE("c_function"); }

int main() {
  status = cudaSetDevice(0);
  for (int round = 0; round < 3; ++round) {
    plain();
    calls_inlined();
    outermost();
    templated<7>();
    calls_variadic();
    {
      Circle circle;
      Shape* volatile shape = &circle;
      shape->draw();
    }
    Functor()();
    Outer::Inner::nested();
    recursive(round + 3);
    cold();
    catches();
    sorts();
    large_frame();
    aligned_frame();
    variable_frame(100 + 1000 * round);
    std::thread(on_thread).join();
    c_function();
    const std::function<void()> lambda = [] { SITE("operator()"); };
    lambda();
    void (*volatile pointer)() = &plain;
    pointer();
  }
  SITE("main");
  for (const auto& [line, site] : planted) {
    std::printf("site %d %d %s\n", line, site.calls, site.functions);
  }
  return 0;
}
