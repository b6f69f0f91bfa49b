#include "collector/import/kineto/kineto_category.h"

#include <unordered_map>

namespace ranktap::collector {

KinetoCategory KinetoCategoryNamed(std::string_view name) {
  static const std::unordered_map<std::string_view, KinetoCategory> kNames = {
      {"cpu_op", KinetoCategory::kOperator},
      {"Operator", KinetoCategory::kOperator},
      {"user_annotation", KinetoCategory::kAnnotation},
      {"python_function", KinetoCategory::kPython},
      {"cuda_runtime", KinetoCategory::kRuntime},
      {"hip_runtime", KinetoCategory::kRuntime},
      {"Runtime", KinetoCategory::kRuntime},
      {"cuda_driver", KinetoCategory::kDriver},
      {"hip_driver", KinetoCategory::kDriver},
      {"mtia_runtime", KinetoCategory::kRuntime},
      {"xpu_runtime", KinetoCategory::kRuntime},
      {"xpu_driver", KinetoCategory::kDriver},
      {"privateuse1_runtime", KinetoCategory::kRuntime},
      {"privateuse1_driver", KinetoCategory::kDriver},
      {"kernel", KinetoCategory::kKernel},
      {"mtia_ccp_events", KinetoCategory::kKernel},
      {"Kernel", KinetoCategory::kKernel},
      {"gpu_memcpy", KinetoCategory::kCopy},
      {"Memcpy", KinetoCategory::kCopy},
      {"gpu_memset", KinetoCategory::kMemset},
      {"Memset", KinetoCategory::kMemset},
      {"cuda_sync", KinetoCategory::kSync},
      {"gpu_user_annotation", KinetoCategory::kDeviceAnnotation},
      {"overhead", KinetoCategory::kOverhead},
      {"cuda_profiler_range", KinetoCategory::kCounters},
      {"Trace", KinetoCategory::kIgnored},
  };
  const auto found = kNames.find(name);
  return found == kNames.end() ? KinetoCategory::kUnknown : found->second;
}

}  // namespace ranktap::collector
