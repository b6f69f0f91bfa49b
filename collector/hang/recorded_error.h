// The exception of a rank that torchrun started, as its program told torchrun: a main function
// under @record (torch.distributed.elastic) writes it to a file before it ends.
#pragma once

#include <string>

namespace ranktap::collector {

// "ValueError: no such label, at train.py:31". Empty: there is none, or it is not such a file.
std::string RecordedError(const std::string& file);

}  // namespace ranktap::collector
