// Whether a seccomp filter lets ranktap's system calls pass. Filters are inherited, so what a child
// of ours may call, the command and its agent may.
#pragma once

#include <string>

namespace ranktap::collector {

// The first of our calls that ends a process here, in words; empty: none does. A child of ours
// makes each of the agent's and of our own once, with arguments that the kernel refuses.
std::string WhyOurCallsEndAProcess();

}  // namespace ranktap::collector
