#include "tests/fakes/cupti/layout.h"

#include <cupti_activity_deprecated.h>

#include "tests/fakes/cupti/cupti_script.h"

namespace ranktap::standin {
namespace {

// CUPTI API versions: 18 is CUDA 11.8; 19 to 28 are 12.0 to 12.9; from 13.0 on it is the CUDA
// version.
constexpr uint32_t kFirst = 18, kLastOfTwelve = 28, kThirteen = 130000;

}  // namespace

const LayoutRow kLayouts[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kFirst, sizeof(CUpti_ActivityKernel8)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 19, sizeof(CUpti_ActivityKernel9)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kThirteen, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_KERNEL, kFirst, sizeof(CUpti_ActivityKernel8)},
    {CUPTI_ACTIVITY_KIND_KERNEL, 19, sizeof(CUpti_ActivityKernel9)},
    {CUPTI_ACTIVITY_KIND_KERNEL, kThirteen, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_MEMCPY, kFirst, sizeof(CUpti_ActivityMemcpy5)},
    {CUPTI_ACTIVITY_KIND_MEMCPY, 26, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, kFirst, sizeof(CUpti_ActivityMemcpyPtoP4)},
    {CUPTI_ACTIVITY_KIND_MEMSET, kFirst, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_RUNTIME, kFirst, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_DRIVER, kFirst, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, kFirst, sizeof(CUpti_ActivityExternalCorrelation)},
    {CUPTI_ACTIVITY_KIND_MEMORY2, kFirst, sizeof(CUpti_ActivityMemory3)},
    {CUPTI_ACTIVITY_KIND_MEMORY2, 24, sizeof(CUpti_ActivityMemory4)},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, kFirst, sizeof(CUpti_ActivityMemoryPool2)},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, kThirteen, sizeof(CUpti_ActivityMemoryPool3)},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, kFirst, sizeof(CUpti_ActivitySynchronization)},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 26, sizeof(CUpti_ActivitySynchronization2)},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, kFirst, sizeof(CUpti_ActivityCudaEvent)},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, 26, sizeof(CUpti_ActivityCudaEvent2)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, kFirst, sizeof(CUpti_ActivityOverhead)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, 20, sizeof(CUpti_ActivityOverhead2)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, 22, sizeof(CUpti_ActivityOverhead3)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, kFirst, sizeof(CUpti_ActivityGraphTrace)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 21, sizeof(CUpti_ActivityGraphTrace2)},
    {CUPTI_ACTIVITY_KIND_CONTEXT, kFirst, sizeof(CUpti_ActivityContext)},
    {CUPTI_ACTIVITY_KIND_CONTEXT, 22, sizeof(CUpti_ActivityContext2)},
    {CUPTI_ACTIVITY_KIND_CONTEXT, 23, sizeof(CUpti_ActivityContext3)},
    {CUPTI_ACTIVITY_KIND_DEVICE, kFirst, sizeof(CUpti_ActivityDevice4)},
    {CUPTI_ACTIVITY_KIND_DEVICE, 24, sizeof(CUpti_ActivityDevice5)},
    {CUPTI_ACTIVITY_KIND_STREAM, kFirst, sizeof(CUpti_ActivityStream)},
    {CUPTI_ACTIVITY_KIND_JIT, kFirst, sizeof(CUpti_ActivityJit)},
    {CUPTI_ACTIVITY_KIND_JIT, 22, sizeof(CUpti_ActivityJit2)},
    {kUnknownKind, kFirst, 64},
};
const size_t kLayoutsCount = sizeof kLayouts / sizeof kLayouts[0];

size_t RecordSize(uint32_t kind) {
  // A version from nowhere (0, 99) has the newest layout: the reader must not trust the number.
  uint32_t version = Script().layout;
  if (version < kFirst || (version > kLastOfTwelve && version < kThirteen)) version = UINT32_MAX;
  size_t bytes = 0;
  for (const LayoutRow& row : kLayouts) {
    if (row.kind == kind && row.since <= version) bytes = row.bytes;
  }
  return bytes == 0 ? 0 : bytes + Script().grow_records;
}

}  // namespace ranktap::standin
