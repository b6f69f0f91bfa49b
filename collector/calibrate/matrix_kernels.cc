#include "collector/calibrate/matrix_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#endif

namespace ranktap::collector {

#if defined(__x86_64__)

namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// A tile's registers lose their configuration with the thread's other state, so each run has its
// own.
__attribute__((target("amx-tile"))) void BeginTiles(const void* left, const void* right) {
  TileConfig config;
  std::fill_n(config.row_bytes, kTiles, kRowBytes);
  std::fill_n(config.rows, kTiles, kRows);
  // GCC's intrinsics say that they read less memory than they do.
  asm volatile("" : : "r"(&config), "r"(left), "r"(right) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, left, kRowBytes);
  _tile_loadd(7, right, kRowBytes);
}

template <typename Element>
struct alignas(64) Tile {
  Element elements[kRows * kRowBytes / sizeof(Element)];
};

template <typename Element>
Tile<Element> TileOf(Element value) {
  Tile<Element> tile;
  std::fill(std::begin(tile.elements), std::end(tile.elements), value);
  return tile;
}

template <typename Element>
__attribute__((target("amx-tile"))) double EndTiles() {
  Tile<Element> sum;
  _tile_stored(5, sum.elements, kRowBytes);
  _tile_release();
  return static_cast<double>(sum.elements[kRows + 1]);
}

}  // namespace

bool MayUseMatrixUnit() {
  static const bool kMay = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAll = 1u << 24 | 1u << 22 | 1u << 25;  // tiles, bf16, int8
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return kMay;
}

__attribute__((target("amx-tile,amx-bf16"))) double Bf16OfTiles(uint64_t rounds) {
  constexpr uint16_t kOne = 0x3f80, kMinusOne = 0xbf80;
  const Tile<uint16_t> left = TileOf(kOne), right = TileOf(kMinusOne);
  BeginTiles(left.elements, right.elements);
  for (uint64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  return EndTiles<float>();
}

__attribute__((target("amx-tile,amx-int8"))) double Int8OfTiles(uint64_t rounds) {
  const Tile<int8_t> left = TileOf<int8_t>(1), right = TileOf<int8_t>(-1);
  BeginTiles(left.elements, right.elements);
  for (uint64_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 6, 7);
    _tile_dpbssd(1, 6, 7);
    _tile_dpbssd(2, 6, 7);
    _tile_dpbssd(3, 6, 7);
    _tile_dpbssd(4, 6, 7);
    _tile_dpbssd(5, 6, 7);
  }
  return EndTiles<int32_t>();
}

#else

bool MayUseMatrixUnit() { return false; }
double Bf16OfTiles(uint64_t) { return 0; }
double Int8OfTiles(uint64_t) { return 0; }

#endif

}  // namespace ranktap::collector
