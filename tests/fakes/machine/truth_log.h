// What the simulated devices did, as JSON lines, so that a test can hold a trace against it. Shares
// no code with anything that writes records: the two must be able to disagree.
//
// On when RANKTAP_STANDIN_TRUTH names a directory. tests/fakes/README.md describes the lines.
#pragma once

#include <cuda.h>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

bool TruthIsLogged();
void LogCall(const ApiCall& call, uint64_t exit_raw_ns, int status);
void LogOperation(const Operation& operation);
void LogSynchronization(const Synchronization& synchronization);
void LogEventRecord(const EventRecord& record);
void LogMemory(const MemoryOperation& memory);
void LogPool(const PoolOperation& pool);
void LogResource(const Resource& resource);
void LogCompilation(const Compilation& compilation);
void LogOverhead(const Overhead& overhead);
void LogHostFunction(uint32_t stream_id, uint32_t context_id, uint32_t correlation,
                     uint64_t start_ns, uint64_t end_ns);
// A CUPTI client subscribed, or went.
void LogSubscription(bool subscribed);
// Something was called that is not modelled. Counted always; on stderr once per name when
// RANKTAP_STANDIN_VERBOSE=1.
void LogRefusal(const char* function);
// The program, or a tool in it, broke the vendor's contract. On stderr likewise.
void LogViolation(const char* what);
// At exit: totals, and the file cut to its length.
void CloseTruth();

}  // namespace ranktap::standin
