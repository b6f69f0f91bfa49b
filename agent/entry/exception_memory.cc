// The exceptions of this library lie in memory that is always there. libstdc++'s own asks malloc,
// and has a reserve that malloc gave it when the library was loaded, or did not: then a refused
// allocation ends the program. Linked into libranktap_agent.so alone, whose libstdc++ is its own.
// Runs on: whatever throws.  May not: allocate while there is a place.
#include <cxxabi.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

// In front of an exception lies the unwinder's part: 128 bytes in each libstdc++ since GCC 4.
constexpr size_t kHeaderBytes = 256;
constexpr size_t kPlaceBytes = 1024;
constexpr size_t kPlaces = 64;

struct alignas(16) Place {
  std::byte bytes[kPlaceBytes];
};

constinit std::array<Place, kPlaces> g_places{};
constinit std::atomic<uint64_t> g_free{~uint64_t{0}};

void* TakePlace() {
  uint64_t free = g_free.load(std::memory_order_relaxed);
  while (free != 0 && !g_free.compare_exchange_weak(free, free & (free - 1))) {
  }
  return free == 0 ? nullptr : &g_places[static_cast<size_t>(std::countr_zero(free))];
}

void* Take(size_t bytes) {
  void* place = bytes <= kPlaceBytes ? TakePlace() : nullptr;
  if (place == nullptr) place = std::malloc(bytes);
  if (place == nullptr) std::terminate();
  return std::memset(place, 0, bytes);
}

void GiveBack(void* place) {
  const auto at = reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(&g_places);
  if (at >= sizeof(g_places)) return std::free(place);
  g_free.fetch_or(uint64_t{1} << at / sizeof(Place));
}

}  // namespace

namespace __cxxabiv1 {

extern "C" void* __cxa_allocate_exception(size_t bytes) noexcept {
  return static_cast<std::byte*>(Take(kHeaderBytes + bytes)) + kHeaderBytes;
}

extern "C" void __cxa_free_exception(void* exception) noexcept {
  GiveBack(static_cast<std::byte*>(exception) - kHeaderBytes);
}

extern "C" __cxa_dependent_exception* __cxa_allocate_dependent_exception() noexcept {
  return static_cast<__cxa_dependent_exception*>(Take(kHeaderBytes));
}

extern "C" void __cxa_free_dependent_exception(__cxa_dependent_exception* exception) noexcept {
  GiveBack(exception);
}

}  // namespace __cxxabiv1
