// The table beside device_kernels.cu: which instruction each kernel has on each architecture, and
// how many FLOPs a block does in one of its rounds.
#include "collector/calibrate/device_kernels.h"

#include <algorithm>

#if defined(RANKTAP_CUBINS)
#include "collector/file/embedded_file.h"

RANKTAP_EMBED(ranktap_cubin_80, RANKTAP_CUBINS "/sm_80.cubin");
RANKTAP_EMBED(ranktap_cubin_90a, RANKTAP_CUBINS "/sm_90a.cubin");
RANKTAP_EMBED(ranktap_cubin_100, RANKTAP_CUBINS "/sm_100.cubin");
RANKTAP_EMBED(ranktap_cubin_120, RANKTAP_CUBINS "/sm_120.cubin");
#define RANKTAP_CUBIN(number) \
  EmbeddedText(ranktap_cubin_##number##_begin, ranktap_cubin_##number##_end)
#else
#define RANKTAP_CUBIN(number) \
  {}
#endif

namespace ranktap::collector {
namespace {

// As in device_kernels.cu; a multiply-add is two.
constexpr double kOfChains = 2.0 * 8 * 16 * kDeviceThreads;
constexpr int kWarps = kDeviceThreads / 32, kWarpgroups = kDeviceThreads / 128;

constexpr double OfProducts(double m, double n, double k) { return 2 * m * n * k * 8 * kWarps; }
constexpr double OfWgmma(double k) { return 2.0 * 64 * 256 * k * 8 * kWarpgroups; }

constexpr DeviceKernel kFp64{"ranktap_fma_fp64", "fp64", "FMA", kOfChains},
    kFp32{"ranktap_fma_fp32", "fp32", "FMA", kOfChains},
    kFp16{"ranktap_fma_fp16", "fp16", "FMA of two", 2 * kOfChains};

constexpr DeviceKernel kAmpere[] = {
    kFp64,
    kFp32,
    kFp16,
    {"ranktap_tensor_fp64", "fp64 tensor", "mma.sync m8n8k4", OfProducts(8, 8, 4)},
    {"ranktap_tensor_tf32", "tf32", "mma.sync m16n8k8", OfProducts(16, 8, 8)},
    {"ranktap_tensor_fp16", "fp16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16)},
    {"ranktap_tensor_bf16", "bf16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16)},
    {"ranktap_tensor_int8", "int8", "mma.sync m16n8k32", OfProducts(16, 8, 32)},
};
constexpr DeviceKernel kHopper[] = {
    kFp64,
    kFp32,
    kFp16,
    {"ranktap_tensor_fp64", "fp64 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16)},
    {"ranktap_tensor_tf32", "tf32", "wgmma m64n256k8", OfWgmma(8)},
    {"ranktap_tensor_fp16", "fp16 tensor", "wgmma m64n256k16", OfWgmma(16)},
    {"ranktap_tensor_bf16", "bf16 tensor", "wgmma m64n256k16", OfWgmma(16)},
    {"ranktap_tensor_fp8", "fp8", "wgmma m64n256k32", OfWgmma(32)},
    {"ranktap_tensor_int8", "int8", "wgmma m64n256k32", OfWgmma(32)},
};
// tcgen05 is faster there, and no device was at hand to try it on. mma.sync has no fp8 of its own.
constexpr DeviceKernel kBlackwell[] = {
    kFp64,
    kFp32,
    kFp16,
    {"ranktap_tensor_fp64", "fp64 tensor", "mma.sync m8n8k4", OfProducts(8, 8, 4), true},
    {"ranktap_tensor_tf32", "tf32", "mma.sync m16n8k8", OfProducts(16, 8, 8), true},
    {"ranktap_tensor_fp16", "fp16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16), true},
    {"ranktap_tensor_bf16", "bf16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16), true},
    {"ranktap_tensor_int8", "int8", "mma.sync m16n8k32", OfProducts(16, 8, 32), true},
};
// It has no tcgen05.
constexpr DeviceKernel kConsumerBlackwell[] = {
    kFp64,
    kFp32,
    kFp16,
    {"ranktap_tensor_tf32", "tf32", "mma.sync m16n8k8", OfProducts(16, 8, 8)},
    {"ranktap_tensor_fp16", "fp16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16)},
    {"ranktap_tensor_bf16", "bf16 tensor", "mma.sync m16n8k16", OfProducts(16, 8, 16)},
    {"ranktap_tensor_fp8", "fp8", "mma.sync m16n8k32", OfProducts(16, 8, 32)},
    {"ranktap_tensor_int8", "int8", "mma.sync m16n8k32", OfProducts(16, 8, 32)},
};

}  // namespace

std::span<const DeviceCode> AllDeviceCode() {
  static const DeviceCode kCode[] = {
      {"sm_80", 8, false, RANKTAP_CUBIN(80), kAmpere},
      {"sm_90a", 9, true, RANKTAP_CUBIN(90a), kHopper},
      {"sm_100", 10, false, RANKTAP_CUBIN(100), kBlackwell},
      {"sm_120", 12, false, RANKTAP_CUBIN(120), kConsumerBlackwell},
  };
  return kCode;
}

const DeviceCode* DeviceCodeFor(int major, int minor) {
  const auto all = AllDeviceCode();
  const auto found = std::ranges::find_if(all, [&](const DeviceCode& code) {
    return code.major == major && (minor == 0 || !code.is_of_minor_0);
  });
  return found == all.end() ? nullptr : &*found;
}

bool HasDeviceCode() { return !AllDeviceCode().front().image.empty(); }

}  // namespace ranktap::collector
