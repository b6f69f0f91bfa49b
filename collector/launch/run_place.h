// Where the directory of `ranktap run` is made: where the user said or stands, else in another
// place that can be written, so that a night's job is not lost to a read-only directory or a full
// disk.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/file/run_directory.h"

namespace ranktap::collector {

// "ranktap-COMMAND-TIME", time as the clock on the wall.
std::string RunNameOf(const std::vector<std::string>& command);

struct RunPlace {
  RunDirectory directory;
  std::string instead_of;  // why it is not the place asked for; empty: it is
};

// `output`: what -o says, empty for ./NAME. The other places, in order: $TMPDIR, /var/tmp, /tmp,
// /dev/shm. A failure where none of them has room for the beginning of a trace: of the first place.
Result<RunPlace> FindRunPlace(const std::string& output, const std::string& name);

}  // namespace ranktap::collector
