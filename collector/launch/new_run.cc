#include "collector/launch/new_run.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "collector/file/read_run_info.h"
#include "collector/ingest/collector.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/launch/resource_attributes.h"
#include "collector/version.h"

namespace ranktap::collector {
namespace {

// As OpenTelemetry names such attributes; the gate takes it off again.
constexpr std::string_view kVariablePrefix = "process.environment_variable.";

// These change how fast a program is, and none of them holds a secret: `diff` names one that
// differs. Others stay unread (docs/security.md).
constexpr const char* kSpeedVariables[] = {
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_NCCL_BLOCKING_WAIT",
};

}  // namespace

RunInfo DescribeNewRun(const std::string& level) {
  RunInfo info;
  info.run = ToHex(RandomId());
  info.collector_version = kVersion;
  info.level = level;
  info.start_realtime_ns = RealtimeNs();
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) == 0) info.host = host;
  info.metadata = ResourceAttributes();
  for (const char* const name : kSpeedVariables) {
    const char* const value = ::getenv(name);
    if (value != nullptr) info.metadata[std::string(kVariablePrefix) + name] = value;
  }
  RedactAsAsked(&info);
  return info;
}

void RedactAsAsked(RunInfo* info) {
  const char* const asked = ::getenv("RANKTAP_REDACT");
  if (asked == nullptr || std::string_view(asked) != "0") Redact(info);
}

}  // namespace ranktap::collector
