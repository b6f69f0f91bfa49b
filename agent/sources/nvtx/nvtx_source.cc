// Puts our handlers into NVTX's tables.
// Runs on: the thread of an object's first NVTX call.  May not: call NVTX, block.
#include "agent/sources/nvtx/nvtx_source.h"

#include "agent/sources/nvtx/nvtx_handlers.h"
#include "agent/sources/nvtx/nvtx_payload.h"

namespace ranktap::agent {
namespace {

class FunctionTable {
 public:
  FunctionTable(NvtxGetExportTableFunc_t get_export_table, NvtxCallbackModule module) {
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks) ||
        callbacks->GetModuleFunctionTable == nullptr ||
        callbacks->GetModuleFunctionTable(module, &functions_, &size_) == 0) {
      functions_ = nullptr;
    }
  }
  bool found() const { return functions_ != nullptr; }

  // Left alone when the program's NVTX is too old to have the slot.
  template <typename Handler>
  void Set(unsigned id, Handler* handler) {
    if (id < size_) *functions_[id] = reinterpret_cast<NvtxFunctionPointer>(handler);
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned size_ = 0;
};

void InstallCore(FunctionTable& table) {
  table.Set(NVTX_CBID_CORE_MarkEx, &nvtx::MarkEx);
  table.Set(NVTX_CBID_CORE_MarkA, &nvtx::MarkA);
  table.Set(NVTX_CBID_CORE_MarkW, &nvtx::MarkW);
  table.Set(NVTX_CBID_CORE_RangeStartEx, &nvtx::RangeStartEx);
  table.Set(NVTX_CBID_CORE_RangeStartA, &nvtx::RangeStartA);
  table.Set(NVTX_CBID_CORE_RangeStartW, &nvtx::RangeStartW);
  table.Set(NVTX_CBID_CORE_RangeEnd, &nvtx::RangeEnd);
  table.Set(NVTX_CBID_CORE_RangePushEx, &nvtx::RangePushEx);
  table.Set(NVTX_CBID_CORE_RangePushA, &nvtx::RangePushA);
  table.Set(NVTX_CBID_CORE_RangePushW, &nvtx::RangePushW);
  table.Set(NVTX_CBID_CORE_RangePop, &nvtx::RangePop);
  table.Set(NVTX_CBID_CORE_NameCategoryA, &nvtx::NameCategoryA);
  table.Set(NVTX_CBID_CORE_NameCategoryW, &nvtx::NameCategoryW);
  table.Set(NVTX_CBID_CORE_NameOsThreadA, &nvtx::NameOsThreadA);
  table.Set(NVTX_CBID_CORE_NameOsThreadW, &nvtx::NameOsThreadW);
}

void InstallCore2(FunctionTable& table) {
  table.Set(NVTX_CBID_CORE2_DomainMarkEx, &nvtx::DomainMarkEx);
  table.Set(NVTX_CBID_CORE2_DomainRangeStartEx, &nvtx::DomainRangeStartEx);
  table.Set(NVTX_CBID_CORE2_DomainRangeEnd, &nvtx::DomainRangeEnd);
  table.Set(NVTX_CBID_CORE2_DomainRangePushEx, &nvtx::DomainRangePushEx);
  table.Set(NVTX_CBID_CORE2_DomainRangePop, &nvtx::DomainRangePop);
  table.Set(NVTX_CBID_CORE2_DomainResourceCreate, &nvtx::DomainResourceCreate);
  table.Set(NVTX_CBID_CORE2_DomainResourceDestroy, &nvtx::DomainResourceDestroy);
  table.Set(NVTX_CBID_CORE2_DomainNameCategoryA, &nvtx::DomainNameCategoryA);
  table.Set(NVTX_CBID_CORE2_DomainNameCategoryW, &nvtx::DomainNameCategoryW);
  table.Set(NVTX_CBID_CORE2_DomainRegisterStringA, &nvtx::DomainRegisterStringA);
  table.Set(NVTX_CBID_CORE2_DomainRegisterStringW, &nvtx::DomainRegisterStringW);
  table.Set(NVTX_CBID_CORE2_DomainCreateA, &nvtx::DomainCreateA);
  table.Set(NVTX_CBID_CORE2_DomainCreateW, &nvtx::DomainCreateW);
  table.Set(NVTX_CBID_CORE2_DomainDestroy, &nvtx::DomainDestroy);
  table.Set(NVTX_CBID_CORE2_Initialize, &nvtx::Initialize);
}

void InstallCuda(FunctionTable& table) {
  table.Set(NVTX_CBID_CUDA_NameCuDeviceA, &nvtx::NameDeviceA);
  table.Set(NVTX_CBID_CUDA_NameCuDeviceW, &nvtx::NameDeviceW);
  table.Set(NVTX_CBID_CUDA_NameCuContextA, &nvtx::NameContextA);
  table.Set(NVTX_CBID_CUDA_NameCuContextW, &nvtx::NameContextW);
  table.Set(NVTX_CBID_CUDA_NameCuStreamA, &nvtx::NameStreamA);
  table.Set(NVTX_CBID_CUDA_NameCuStreamW, &nvtx::NameStreamW);
  table.Set(NVTX_CBID_CUDA_NameCuEventA, &nvtx::NameEventA);
  table.Set(NVTX_CBID_CUDA_NameCuEventW, &nvtx::NameEventW);
}

void InstallCudart(FunctionTable& table) {
  table.Set(NVTX_CBID_CUDART_NameCudaDeviceA, &nvtx::NameDeviceA);
  table.Set(NVTX_CBID_CUDART_NameCudaDeviceW, &nvtx::NameDeviceW);
  table.Set(NVTX_CBID_CUDART_NameCudaStreamA, &nvtx::NameStreamA);
  table.Set(NVTX_CBID_CUDART_NameCudaStreamW, &nvtx::NameStreamW);
  table.Set(NVTX_CBID_CUDART_NameCudaEventA, &nvtx::NameEventA);
  table.Set(NVTX_CBID_CUDART_NameCudaEventW, &nvtx::NameEventW);
}

}  // namespace

bool InstallNvtxHandlers(NvtxGetExportTableFunc_t get_export_table) {
  FunctionTable core(get_export_table, NVTX_CB_MODULE_CORE);
  if (!core.found()) return false;
  InstallCore(core);
  // Programs built with NVTX 1 have no second table, and those without CUDA's headers no naming.
  if (FunctionTable core2(get_export_table, NVTX_CB_MODULE_CORE2); core2.found()) {
    InstallCore2(core2);
  }
  if (FunctionTable cuda(get_export_table, NVTX_CB_MODULE_CUDA); cuda.found()) InstallCuda(cuda);
  if (FunctionTable cudart(get_export_table, NVTX_CB_MODULE_CUDART); cudart.found()) {
    InstallCudart(cudart);
  }
  return true;
}

bool InstallNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (module == nullptr || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
      module->segmentsCount == 0 || module->segments == nullptr) {
    return false;
  }
  const nvtxExtModuleSegment_t& segment = module->segments[0];
  const auto set = [&segment](size_t id, auto* handler) {
    if (id < segment.slotCount) segment.functionSlots[id] = reinterpret_cast<intptr_t>(handler);
  };
  set(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, &RegisterPayloadSchema);
  set(NVTX3EXT_CBID_nvtxPayloadEnumRegister, &RegisterPayloadEnum);
  set(NVTX3EXT_CBID_nvtxMarkPayload, &nvtx::MarkPayload);
  set(NVTX3EXT_CBID_nvtxRangePushPayload, &nvtx::RangePushPayload);
  set(NVTX3EXT_CBID_nvtxRangePopPayload, &nvtx::RangePopPayload);
  set(NVTX3EXT_CBID_nvtxRangeStartPayload, &nvtx::RangeStartPayload);
  set(NVTX3EXT_CBID_nvtxRangeEndPayload, &nvtx::RangeEndPayload);
  set(NVTX3EXT_CBID_nvtxDomainIsEnabled, &nvtx::DomainIsEnabled);
  return true;
}

}  // namespace ranktap::agent
