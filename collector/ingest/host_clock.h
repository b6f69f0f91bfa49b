// The clocks of this host, as an agent reads them: the collector's own readings go into every
// checkpoint, so that a trace can be mapped however few its process lived to make.
#pragma once

#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {

// The tightest of several tries. `tsc` is 0 where the processor has none.
v1::ClockReading ReadClocks();

}  // namespace ranktap::collector
