// CPython 3.12 and newer warn at os.fork where the process has a second thread: they count those in
// /proc/self/stat right after the fork. Ours are away meanwhile, where the program has but one.
// Runs on: InstallPythonForkHooks as InstallConfinementHooks; the hooks on the thread that forks.
// May not: change what the calls return.
#pragma once

#include "agent/entry/confinement.h"

namespace ranktap::agent {

// Nothing where there is no such Python in the process.
void InstallPythonForkHooks(const ConfinementDuties& duties);

}  // namespace ranktap::agent
