// Runs on: any thread, once in a process.  May not: throw.
#include "agent/core/contain.h"

#include <cstdlib>
#include <exception>

#include "agent/core/log.h"
#include "agent/core/writer.h"

namespace ranktap::agent {

void OnContainedFailure() {
  if (Capturing(kCaptureAlive)) ThreadStates::LoseWithoutWriter(proto::Loss::kContained);
  GoQuiet();
  Log("an internal error was contained; nothing more is recorded in this process");
}

void OnNoMemory() {
  if (Capturing(kCaptureAlive)) ThreadStates::LoseWithoutWriter(proto::Loss::kContained);
  Log("no memory for something of ours: it is lost, and counted");
}

}  // namespace ranktap::agent

// libstdc++'s own prints the exception to the job's stderr, and brings 100 KB of demangler into
// every process for it. Ours is reached only if std::terminate is, which nothing here may cause.
namespace __gnu_cxx {

void __verbose_terminate_handler() { std::abort(); }

}  // namespace __gnu_cxx
