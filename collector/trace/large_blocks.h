// See large_blocks.cc.
#pragma once

namespace ranktap::collector {

// From here on up to 512 MiB of large blocks that were given back stay with the process. For
// commands that end when they have answered; never in a collector, which lives beside a job. Does
// nothing in a sanitizer's build. Any thread.
void KeepLargeBlocks();

}  // namespace ranktap::collector
