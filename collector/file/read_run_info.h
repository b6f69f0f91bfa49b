// run.json as it is read and shown: whoever wrote it may have made it a FIFO or a link to a device,
// and a person's words in it may hold a password.
#pragma once

#include <string>

#include "collector/file/run_info.h"

namespace ranktap::collector {

// Reads run.json of a run's folder; an empty RunInfo where there is none.
Result<RunInfo> ReadRunInfo(const std::string& directory);

// Takes the secrets out of what a person or a program wrote (proto/redact.h).
void Redact(RunInfo* info);
void Redact(v1::Hello* hello);
// Redacts a value that belongs to a name, which may tell that it is a secret.
void RedactValue(const std::string& name, std::string* value);

}  // namespace ranktap::collector
