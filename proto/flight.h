// The frame in which a collector asks for what PyTorch's Flight Recorder holds (v1.FlightRequest),
// and in which the agent answers (v1.FlightPart). No file gets it.
#pragma once

#include "proto/frame.h"

namespace ranktap::proto {

// The one behind those of frame.h.
inline constexpr FrameType kFlightFrame{19};

}  // namespace ranktap::proto
