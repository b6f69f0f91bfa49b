// What calibrate runs on a GPU: chains of multiply-adds, products on tensor cores, a copy. nvcc
// makes a cubin of it for each architecture (device_kernels.cc); the driver loads it, nothing links
// it.
//
// Every kernel of arithmetic takes (rounds, cycles, sink). Each block writes how many cycles its
// rounds took, and the last one's stay: a multiprocessor lets its older blocks go first, so that
// block 0 alone told of 250 MHz on an H200. `sink` is written for a number of rounds that nobody
// asks for, so that ptxas may drop no chain.
#include <cstdint>

namespace {

constexpr int kThreads = 256;  // as in device_kernels.cc
constexpr int kChains = 8, kSteps = 16;
constexpr uint64_t kNever = ~uint64_t{0};

__device__ void Tell(long long begin, uint64_t* cycles) {
  if (threadIdx.x == 0) *cycles = static_cast<uint64_t>(clock64() - begin);
}

// Values of magnitude 1 to 2 of either sign: zeros would take less power than a program's numbers.
__device__ uint32_t Mixed(uint32_t seed, uint32_t base, uint32_t mask) {
  seed = (seed ^ (seed >> 16)) * 0x7feb352du;
  seed = (seed ^ (seed >> 15)) * 0x846ca68bu;
  return base ^ ((seed ^ (seed >> 16)) & mask);
}

}  // namespace

#define RANKTAP_KERNEL(name)                             \
  extern "C" __global__ void __launch_bounds__(kThreads) \
      name(uint64_t rounds, uint64_t* cycles, uint64_t* sink)

#define RANKTAP_MULTIPLY_ADDS(name, Type, letter, instruction, first, times, plus) \
  RANKTAP_KERNEL(name) {                                                           \
    const Type unknown = static_cast<Type>(rounds == kNever);                      \
    Type chain[kChains], factor = times + unknown, addend = plus + unknown;        \
    for (int i = 0; i < kChains; ++i) chain[i] = first;                            \
    const long long begin = clock64();                                             \
    _Pragma("unroll 1") for (uint64_t round = 0; round < rounds; ++round) {        \
      _Pragma("unroll") for (int step = 0; step < kSteps; ++step) {                \
        _Pragma("unroll") for (int i = 0; i < kChains; ++i) {                      \
          asm volatile(instruction " %0, %0, %1, %2;"                              \
                       : "+" letter(chain[i])                                      \
                       : letter(factor), letter(addend));                          \
        }                                                                          \
      }                                                                            \
    }                                                                              \
    Tell(begin, cycles);                                                           \
    if (rounds != kNever) return;                                                  \
    for (int i = 1; i < kChains; ++i) chain[0] += chain[i];                        \
    *sink = static_cast<uint64_t>(chain[0]);                                       \
  }

RANKTAP_MULTIPLY_ADDS(ranktap_fma_fp64, double, "d", "fma.rn.f64", threadIdx.x, 0.999, 0.001)
RANKTAP_MULTIPLY_ADDS(ranktap_fma_fp32, float, "f", "fma.rn.f32", threadIdx.x, 0.999F, 0.001F)
// Two values a register. With a factor that ptxas knows, all go to one of Hopper's two units: 66
// TFLOP/s on an H200, and 129 with one that it does not.
RANKTAP_MULTIPLY_ADDS(ranktap_fma_fp16, uint32_t, "r", "fma.rn.f16x2", threadIdx.x, 0x3bff3bff,
                      0x14001400)

// A product of one warp, D += A B, with four registers of A and two of B.
#define RANKTAP_MMA(name, Sum, letter, instruction, base, mask)                           \
  RANKTAP_KERNEL(name) {                                                                  \
    uint32_t a[4], b[2];                                                                  \
    for (int i = 0; i < 4; ++i) a[i] = Mixed(threadIdx.x * 8 + i, base, mask);            \
    for (int i = 0; i < 2; ++i) b[i] = Mixed(threadIdx.x * 8 + 4 + i, base, mask);        \
    Sum d[kChains][4] = {};                                                               \
    const long long begin = clock64();                                                    \
    _Pragma("unroll 1") for (uint64_t round = 0; round < rounds; ++round) {               \
      _Pragma("unroll") for (int i = 0; i < kChains; ++i) {                               \
        asm volatile("mma.sync.aligned." instruction                                      \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                     : "+" letter(d[i][0]), "+" letter(d[i][1]), "+" letter(d[i][2]),     \
                       "+" letter(d[i][3])                                                \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
      }                                                                                   \
    }                                                                                     \
    Tell(begin, cycles);                                                                  \
    if (rounds != kNever) return;                                                         \
    Sum sum = 0;                                                                          \
    for (int i = 0; i < 4 * kChains; ++i) sum += d[i / 4][i % 4];                         \
    *sink = static_cast<uint64_t>(sum);                                                   \
  }

// Doubles: Hopper has a larger shape, which alone reaches its rate. Consumer Blackwell has no such
// unit.
#if __CUDA_ARCH__ < 1200
RANKTAP_KERNEL(ranktap_tensor_fp64) {
  double d[kChains][4] = {};
  double a[8], b[4];
  for (int i = 0; i < 8; ++i) a[i] = 1.0 + threadIdx.x * 1e-3 + i;
  for (int i = 0; i < 4; ++i) b[i] = -1.0 - threadIdx.x * 1e-3 - i;
  const long long begin = clock64();
#pragma unroll 1
  for (uint64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
#if __CUDA_ARCH__ == 900
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
          : "+d"(d[i][0]), "+d"(d[i][1]), "+d"(d[i][2]), "+d"(d[i][3])
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
            "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(d[i][0]), "+d"(d[i][1])
                   : "d"(a[i]), "d"(b[i % 4]));
#endif
    }
  }
  Tell(begin, cycles);
  if (rounds != kNever) return;
  double sum = 0;
  for (int i = 0; i < 4 * kChains; ++i) sum += d[i / 4][i % 4];
  *sink = static_cast<uint64_t>(sum);
}
#endif

#if __CUDA_ARCH__ != 900

RANKTAP_MMA(ranktap_tensor_tf32, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32", 0x3f800000,
            0x807fffff)
RANKTAP_MMA(ranktap_tensor_fp16, float, "f", "m16n8k16.row.col.f32.f16.f16.f32", 0x3c003c00,
            0x83ff83ff)
RANKTAP_MMA(ranktap_tensor_bf16, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32", 0x3f803f80,
            0x807f807f)
RANKTAP_MMA(ranktap_tensor_int8, int32_t, "r", "m16n8k32.row.col.s32.s8.s8.s32", 0, 0xffffffff)
// The compiler makes two products of 16-bit floats of it for data centres' Blackwell.
#if __CUDA_ARCH__ >= 1200
RANKTAP_MMA(ranktap_tensor_fp8, float, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 0x38383838,
            0x87878787)
#endif

#else

// Hopper: two warpgroups multiply 64 by 256 values of what lies in shared memory, K-major in rows
// of 128 bytes with their swizzle, as libraries have it.
namespace {

constexpr int kRowBytes = 128, kRowsOfA = 64, kRowsOfB = 256, kProducts = 8;

// PTX ISA, "Shared memory matrix layout": the address and the stride of eight rows in 16 bytes, and
// the swizzle.
__device__ uint64_t Describe(const void* at) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(at));
  return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{8 * kRowBytes / 16} << 32 |
         uint64_t{1} << 62;
}

}  // namespace

#define RANKTAP_SUMS                                                                               \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "    \
  "%20, %21, %22, "                                                                                \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "     \
  "%41, %42, %43, "                                                                                \
  "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "     \
  "%62, %63, %64, "                                                                                \
  "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, "     \
  "%83, %84, %85, "                                                                                \
  "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, "                                                                                   \
  "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "     \
  "%121, %122, "                                                                                   \
  "%123, %124, %125, %126, %127}"
#define RANKTAP_4(letter, i) \
  "+" letter(d[i]), "+" letter(d[i + 1]), "+" letter(d[i + 2]), "+" letter(d[i + 3])
#define RANKTAP_32(letter, i)                                                          \
  RANKTAP_4(letter, i), RANKTAP_4(letter, i + 4), RANKTAP_4(letter, i + 8),            \
      RANKTAP_4(letter, i + 12), RANKTAP_4(letter, i + 16), RANKTAP_4(letter, i + 20), \
      RANKTAP_4(letter, i + 24), RANKTAP_4(letter, i + 28)

#define RANKTAP_WGMMA(name, Sum, letter, instruction, scales, base, mask)                         \
  RANKTAP_KERNEL(name) {                                                                          \
    __shared__ __align__(1024) uint32_t a[kRowsOfA * kRowBytes / 4], b[kRowsOfB * kRowBytes / 4]; \
    for (int i = threadIdx.x; i < kRowsOfA * kRowBytes / 4; i += kThreads)                        \
      a[i] = Mixed(i, base, mask);                                                                \
    for (int i = threadIdx.x; i < kRowsOfB * kRowBytes / 4; i += kThreads)                        \
      b[i] = Mixed(~i, base, mask);                                                               \
    asm volatile("fence.proxy.async;" ::: "memory");                                              \
    __syncthreads();                                                                              \
    const uint64_t left = Describe(a), right = Describe(b);                                       \
    Sum d[128] = {};                                                                              \
    const long long begin = clock64();                                                            \
    _Pragma("unroll 1") for (uint64_t round = 0; round < rounds; ++round) {                       \
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                     \
      _Pragma("unroll") for (int i = 0; i < kProducts; ++i) {                                     \
        asm volatile(                                                                             \
            "{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." instruction       \
            " " RANKTAP_SUMS ", %128, %129, p" scales ";}"                                        \
            : RANKTAP_32(letter, 0), RANKTAP_32(letter, 32), RANKTAP_32(letter, 64),              \
              RANKTAP_32(letter, 96)                                                              \
            : "l"(left + i % 4 * 2), "l"(right + i % 4 * 2));                                     \
      }                                                                                           \
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                              \
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                              \
    }                                                                                             \
    Tell(begin, cycles);                                                                          \
    if (rounds != kNever) return;                                                                 \
    Sum sum = 0;                                                                                  \
    for (int i = 0; i < 128; ++i) sum += d[i];                                                    \
    *sink = static_cast<uint64_t>(sum);                                                           \
  }

RANKTAP_WGMMA(ranktap_tensor_tf32, float, "f", "m64n256k8.f32.tf32.tf32", ", 1, 1", 0x3f800000,
              0x807fffff)
RANKTAP_WGMMA(ranktap_tensor_fp16, float, "f", "m64n256k16.f32.f16.f16", ", 1, 1, 0, 0", 0x3c003c00,
              0x83ff83ff)
RANKTAP_WGMMA(ranktap_tensor_bf16, float, "f", "m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0",
              0x3f803f80, 0x807f807f)
RANKTAP_WGMMA(ranktap_tensor_fp8, float, "f", "m64n256k32.f32.e4m3.e4m3", ", 1, 1", 0x38383838,
              0x87878787)
RANKTAP_WGMMA(ranktap_tensor_int8, int32_t, "r", "m64n256k32.s32.s8.s8", "", 0, 0xffffffff)

#endif

// Past L1, which would answer for L2.
extern "C" __global__ void __launch_bounds__(kThreads)
    ranktap_copy(uint64_t rounds, uint4* to, const uint4* from, uint64_t count) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
#pragma unroll 1
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t at = uint64_t{blockIdx.x} * kThreads + threadIdx.x; at < count;
         at += 4 * stride) {
      uint4 moved[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (at + i * stride < count) moved[i] = __ldcg(from + at + i * stride);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (at + i * stride < count) __stcg(to + at + i * stride, moved[i]);
      }
    }
    asm volatile("" ::: "memory");
  }
}

// Of all ways to use the memory that were tried on an H200 the fastest: 4.6 TB/s, a copy 4.0
// to 4.1.
extern "C" __global__ void __launch_bounds__(kThreads)
    ranktap_read(const uint4* from, uint4* sink, uint64_t count) {
  constexpr int kReads = 8;
  const uint64_t at = uint64_t{blockIdx.x} * kThreads * kReads + threadIdx.x;
  uint4 read[kReads];
#pragma unroll
  for (int i = 0; i < kReads; ++i) {
    const uint64_t each = at + i * kThreads;
    read[i] = each < count ? __ldcg(from + each) : uint4{};
  }
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kReads; ++i) sum += read[i].x ^ read[i].y ^ read[i].z ^ read[i].w;
  if (sum == 0x2545f491u) *sink = read[0];
}

extern "C" __global__ void ranktap_nothing() {}
