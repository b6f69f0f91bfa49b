#include "collector/calibrate/host_kernels.h"

#include <algorithm>
#include <vector>

#include "collector/calibrate/matrix_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

// GCC 12's own headers of intrinsics begin with values that they call undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace ranktap::collector {
namespace {

// Twelve chains: two units with a latency of four or five cycles need eight to ten.
#define RANKTAP_EACH_CHAIN(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
constexpr double kChains = 12;

// The compiler may neither drop a chain nor work out where it ends.
#define RANKTAP_KEEP(value) asm volatile("" : "+v"(value))

#define RANKTAP_BEGIN(n) Vector chain##n = Vector{} + static_cast<Element>(n);
#define RANKTAP_STEP(n) chain##n = chain##n * factor + addend;
#define RANKTAP_END(n) sum += chain##n;

#define RANKTAP_MULTIPLY_ADDS(Name, ElementType, Bytes, Keep, ...) \
  __VA_ARGS__ double Name(uint64_t rounds) {                       \
    using Element = ElementType;                                   \
    typedef Element Vector __attribute__((vector_size(Bytes)));    \
    RANKTAP_EACH_CHAIN(RANKTAP_BEGIN)                              \
    Vector factor = Vector{} + static_cast<Element>(0.999),        \
           addend = Vector{} + static_cast<Element>(0.001);        \
    Keep(factor);                                                  \
    Keep(addend);                                                  \
    for (uint64_t i = 0; i < rounds; ++i) {                        \
      RANKTAP_EACH_CHAIN(RANKTAP_STEP)                             \
    }                                                              \
    Vector sum{};                                                  \
    RANKTAP_EACH_CHAIN(RANKTAP_END)                                \
    return static_cast<double>(sum[0]);                            \
  }

#if defined(__x86_64__)

RANKTAP_MULTIPLY_ADDS(Fp64Of512, double, 64, RANKTAP_KEEP, __attribute__((target("avx512f"))))
RANKTAP_MULTIPLY_ADDS(Fp32Of512, float, 64, RANKTAP_KEEP, __attribute__((target("avx512f"))))
RANKTAP_MULTIPLY_ADDS(Fp64Of256, double, 32, RANKTAP_KEEP, __attribute__((target("avx2,fma"))))
RANKTAP_MULTIPLY_ADDS(Fp32Of256, float, 32, RANKTAP_KEEP, __attribute__((target("avx2,fma"))))
#define RANKTAP_KEEP_XMM(value) asm volatile("" : "+x"(value))
RANKTAP_MULTIPLY_ADDS(Fp64Of128, double, 16, RANKTAP_KEEP_XMM, )
RANKTAP_MULTIPLY_ADDS(Fp32Of128, float, 16, RANKTAP_KEEP_XMM, )

#define RANKTAP_BF16_BEGIN(n) __m512 chain##n = _mm512_set1_ps(n);
#define RANKTAP_BF16_STEP(n) chain##n = _mm512_dpbf16_ps(chain##n, left, right);
#define RANKTAP_BF16_END(n) sum = _mm512_add_ps(sum, chain##n);
__attribute__((target("avx512f,avx512bf16"))) double Bf16Of512(uint64_t rounds) {
  RANKTAP_EACH_CHAIN(RANKTAP_BF16_BEGIN)
  __m512 ones = _mm512_set1_ps(1), minus_ones = _mm512_set1_ps(-1);
  RANKTAP_KEEP(ones);
  RANKTAP_KEEP(minus_ones);
  const __m512bh left = _mm512_cvtne2ps_pbh(ones, ones),
                 right = _mm512_cvtne2ps_pbh(minus_ones, minus_ones);
  for (uint64_t i = 0; i < rounds; ++i) {
    RANKTAP_EACH_CHAIN(RANKTAP_BF16_STEP)
  }
  __m512 sum = _mm512_setzero_ps();
  RANKTAP_EACH_CHAIN(RANKTAP_BF16_END)
  return _mm512_cvtss_f32(sum);
}

#define RANKTAP_INT8_BEGIN(n) __m512i chain##n = _mm512_set1_epi32(n);
#define RANKTAP_INT8_STEP(n) chain##n = _mm512_dpbusd_epi32(chain##n, left, right);
#define RANKTAP_INT8_END(n) sum = _mm512_add_epi32(sum, chain##n);
__attribute__((target("avx512f,avx512vnni"))) double Int8Of512(uint64_t rounds) {
  RANKTAP_EACH_CHAIN(RANKTAP_INT8_BEGIN)
  __m512i left = _mm512_set1_epi8(1), right = _mm512_set1_epi8(-1);
  RANKTAP_KEEP(left);
  RANKTAP_KEEP(right);
  for (uint64_t i = 0; i < rounds; ++i) {
    RANKTAP_EACH_CHAIN(RANKTAP_INT8_STEP)
  }
  __m512i sum = _mm512_setzero_si512();
  RANKTAP_EACH_CHAIN(RANKTAP_INT8_END)
  return _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
}

#define RANKTAP_VNNI_BEGIN(n) __m256i chain##n = _mm256_set1_epi32(n);
#define RANKTAP_VNNI_STEP(n) chain##n = _mm256_dpbusd_avx_epi32(chain##n, left, right);
#define RANKTAP_VNNI_END(n) sum = _mm256_add_epi32(sum, chain##n);
__attribute__((target("avx2,avxvnni"))) double Int8Of256(uint64_t rounds) {
  RANKTAP_EACH_CHAIN(RANKTAP_VNNI_BEGIN)
  __m256i left = _mm256_set1_epi8(1), right = _mm256_set1_epi8(-1);
  RANKTAP_KEEP(left);
  RANKTAP_KEEP(right);
  for (uint64_t i = 0; i < rounds; ++i) {
    RANKTAP_EACH_CHAIN(RANKTAP_VNNI_STEP)
  }
  __m256i sum = _mm256_setzero_si256();
  RANKTAP_EACH_CHAIN(RANKTAP_VNNI_END)
  return _mm256_cvtsi256_si32(sum);
}

bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1u << 4;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

#elif defined(__aarch64__)

#define RANKTAP_KEEP_NEON(value) asm volatile("" : "+w"(value))
RANKTAP_MULTIPLY_ADDS(Fp64Of128, double, 16, RANKTAP_KEEP_NEON, )
RANKTAP_MULTIPLY_ADDS(Fp32Of128, float, 16, RANKTAP_KEEP_NEON, )

// One chain a register of the sixteen that hold sums; each product is of 2x4 by 4x2 values (bf16),
// 2x8 by 8x2 (int8), or four dot products of four int8.
#define RANKTAP_BFMMLA_BEGIN(n) float32x4_t chain##n = vdupq_n_f32(n);
#define RANKTAP_BFMMLA_STEP(n) \
  asm volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(chain##n) : "w"(left), "w"(right));
#define RANKTAP_BFMMLA_END(n) sum = vaddq_f32(sum, chain##n);
__attribute__((target("arch=armv8.6-a+bf16"))) double Bf16OfMatrices(uint64_t rounds) {
  RANKTAP_EACH_CHAIN(RANKTAP_BFMMLA_BEGIN)
  const uint16x8_t left = vdupq_n_u16(0x3f80), right = vdupq_n_u16(0xbf80);
  for (uint64_t i = 0; i < rounds; ++i) {
    RANKTAP_EACH_CHAIN(RANKTAP_BFMMLA_STEP)
  }
  float32x4_t sum = vdupq_n_f32(0);
  RANKTAP_EACH_CHAIN(RANKTAP_BFMMLA_END)
  return vgetq_lane_f32(sum, 0);
}

#define RANKTAP_INT_BEGIN(n) int32x4_t chain##n = vdupq_n_s32(n);
#define RANKTAP_INT_END(n) sum = vaddq_s32(sum, chain##n);
#define RANKTAP_SMMLA_STEP(n) \
  asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(chain##n) : "w"(left), "w"(right));
#define RANKTAP_SDOT_STEP(n) \
  asm volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(chain##n) : "w"(left), "w"(right));
#define RANKTAP_INT8_OF_NEON(Name, Step, Target)                  \
  __attribute__((target(Target))) double Name(uint64_t rounds) {  \
    RANKTAP_EACH_CHAIN(RANKTAP_INT_BEGIN)                         \
    const int8x16_t left = vdupq_n_s8(1), right = vdupq_n_s8(-1); \
    for (uint64_t i = 0; i < rounds; ++i) {                       \
      RANKTAP_EACH_CHAIN(Step)                                    \
    }                                                             \
    int32x4_t sum = vdupq_n_s32(0);                               \
    RANKTAP_EACH_CHAIN(RANKTAP_INT_END)                           \
    return vgetq_lane_s32(sum, 0);                                \
  }
RANKTAP_INT8_OF_NEON(Int8OfMatrices, RANKTAP_SMMLA_STEP, "arch=armv8.6-a+i8mm")
RANKTAP_INT8_OF_NEON(Int8OfDots, RANKTAP_SDOT_STEP, "arch=armv8.2-a+dotprod")

#endif

#define RANKTAP_TRIAD(Name, Bytes, ...)                                           \
  __VA_ARGS__ void Name(float* a, const float* b, const float* c, uint64_t count, \
                        uint64_t rounds) {                                        \
    typedef float Vector __attribute__((vector_size(Bytes)));                     \
    constexpr uint64_t kFloats = (Bytes) / sizeof(float);                         \
    const Vector half = Vector{} + 0.5F;                                          \
    for (uint64_t round = 0; round < rounds; ++round) {                           \
      for (uint64_t i = 0; i < count; i += 4 * kFloats) {                         \
        auto* to = reinterpret_cast<Vector*>(a + i);                              \
        const auto* left = reinterpret_cast<const Vector*>(b + i);                \
        const auto* right = reinterpret_cast<const Vector*>(c + i);               \
        to[0] = left[0] + half * right[0];                                        \
        to[1] = left[1] + half * right[1];                                        \
        to[2] = left[2] + half * right[2];                                        \
        to[3] = left[3] + half * right[3];                                        \
      }                                                                           \
      asm volatile("" ::: "memory");                                              \
    }                                                                             \
  }

#if defined(__x86_64__)
RANKTAP_TRIAD(TriadOf512, 64, __attribute__((target("avx512f"))))
RANKTAP_TRIAD(TriadOf256, 32, __attribute__((target("avx2,fma"))))
#endif
RANKTAP_TRIAD(TriadOf128, 16, )

// The chains begin at 0 to 11.
constexpr double kFirst = 66;

std::vector<ArithmeticKernel> FindKernels() {
  std::vector<ArithmeticKernel> found;
#if defined(__x86_64__)
  if (MayUseMatrixUnit()) {
    found.push_back({"bf16", "AMX", kMatrixTiles * kBf16OfProduct, &Bf16OfTiles, 0, -32});
    found.push_back({"int8", "AMX", kMatrixTiles * kInt8OfProduct, &Int8OfTiles, 0, -64});
  }
  if (__builtin_cpu_supports("avx512f") != 0) {
    found.push_back({"fp64", "AVX-512 FMA", kChains * 8 * 2, &Fp64Of512});
    found.push_back({"fp32", "AVX-512 FMA", kChains * 16 * 2, &Fp32Of512});
  }
  if (__builtin_cpu_supports("avx512bf16") != 0) {
    found.push_back({"bf16", "AVX-512 BF16", kChains * 32 * 2, &Bf16Of512, kFirst, -2 * kChains});
  }
  if (__builtin_cpu_supports("avx512vnni") != 0) {
    found.push_back({"int8", "AVX-512 VNNI", kChains * 64 * 2, &Int8Of512, kFirst, -4 * kChains});
  }
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    found.push_back({"fp64", "AVX2 FMA", kChains * 4 * 2, &Fp64Of256});
    found.push_back({"fp32", "AVX2 FMA", kChains * 8 * 2, &Fp32Of256});
    if (HasAvxVnni()) {
      found.push_back({"int8", "AVX-VNNI", kChains * 32 * 2, &Int8Of256, kFirst, -4 * kChains});
    }
  }
  found.push_back({"fp64", "SSE2", kChains * 2 * 2, &Fp64Of128});
  found.push_back({"fp32", "SSE2", kChains * 4 * 2, &Fp32Of128});
#elif defined(__aarch64__)
  found = {{"fp64", "NEON", kChains * 2 * 2, &Fp64Of128},
           {"fp32", "NEON", kChains * 4 * 2, &Fp32Of128}};
  constexpr unsigned long kDots = 1ul << 20, kInt8Matrices = 1ul << 13, kBf16 = 1ul << 14;
  if ((getauxval(AT_HWCAP2) & kBf16) != 0) {
    found.push_back({"bf16", "NEON BFMMLA", kChains * 32, &Bf16OfMatrices, kFirst, -4 * kChains});
  }
  if ((getauxval(AT_HWCAP2) & kInt8Matrices) != 0) {
    found.push_back({"int8", "NEON SMMLA", kChains * 64, &Int8OfMatrices, kFirst, -8 * kChains});
  }
  if ((getauxval(AT_HWCAP) & kDots) != 0) {
    found.push_back({"int8", "NEON SDOT", kChains * 32, &Int8OfDots, kFirst, -4 * kChains});
  }
#endif
  return found;
}

}  // namespace

std::span<const ArithmeticKernel> EveryArithmeticKernel() {
  static const std::vector<ArithmeticKernel> kFound = FindKernels();
  return kFound;
}

std::span<const ArithmeticKernel> ArithmeticKernels() {
  static const std::vector<ArithmeticKernel> kWidest = [] {
    std::vector<ArithmeticKernel> widest;
    for (const ArithmeticKernel& kernel : EveryArithmeticKernel()) {
      const bool is_known = std::ranges::any_of(
          widest, [&kernel](const ArithmeticKernel& of) { return of.type == kernel.type; });
      if (!is_known) widest.push_back(kernel);
    }
    constexpr std::string_view kOrder[] = {"fp64", "fp32", "bf16", "int8"};
    std::ranges::stable_sort(widest, {}, [&kOrder](const ArithmeticKernel& of) {
      return std::ranges::find(kOrder, of.type) - std::begin(kOrder);
    });
    return widest;
  }();
  return kWidest;
}

void Triad(float* a, const float* b, const float* c, uint64_t count, uint64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return TriadOf512(a, b, c, count, rounds);
  if (__builtin_cpu_supports("avx2") != 0) return TriadOf256(a, b, c, count, rounds);
#endif
  TriadOf128(a, b, c, count, rounds);
}

}  // namespace ranktap::collector
