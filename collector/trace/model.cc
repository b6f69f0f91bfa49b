// A Trace has some 150 columns and texts: each file that moved or ended one compiled 60 KiB for it.
#include "collector/trace/model.h"

namespace ranktap::collector {

Trace::Trace() = default;
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

}  // namespace ranktap::collector
