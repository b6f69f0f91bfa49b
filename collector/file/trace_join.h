// Files of one process that follow each other -> one file: their blocks, as they are stored.
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

// `files`: closed ones of `owner` below `directory`, whose path is `path`, in their order. `into`
// is empty and open for writing. Returns how many bytes it has then. Fails at the first block that
// is damaged or cannot be written; `into` is of no use then.
Result<uint64_t> JoinTraces(int directory, uid_t owner, const std::string& path,
                            const std::vector<std::string>& files, FileDescriptor into);

}  // namespace ranktap::collector
