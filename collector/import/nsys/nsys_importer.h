// Files of `nsys export --type sqlite`, and our own sqlite export.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// A trace for each process in the file, by their ids. Ranks are known where the file has our own
// table RANKTAP_RANKS. Times count from the start of the session. Fails when the file is no
// database or has none of nsys' tables; what could not be read is in Trace::damage of the first
// trace.
Result<std::vector<Trace>> ImportNsys(const std::string& path);

}  // namespace ranktap::collector
