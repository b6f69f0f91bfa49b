// NVTX ranges, marks and names, served directly (docs/decisions/): the folder's outward header.
//
// Each shared object that was compiled with NVTX calls us once with a table of its own; the
// handlers are installed in all of them. Runs on: the thread of the program's first NVTX call in
// that object, while other threads of it spin.  May not: call NVTX, block.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

namespace ranktap::agent {

// Fills in the core tables (CORE, CORE2, CUDA, CUDART). False: not a table we understand.
bool InstallNvtxHandlers(NvtxGetExportTableFunc_t get_export_table);

// Fills in the payload extension's slots; other extensions stay no-ops.
bool InstallNvtxExtension(nvtxExtModuleInfo_t* module);

}  // namespace ranktap::agent
