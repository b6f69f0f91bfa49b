#include "collector/facts/samples/host_phases.h"

#include "collector/facts/causes/device_sweep.h"

namespace ranktap::collector {

HostPhases::HostPhases(const Trace& trace) : gaps_(trace) {
  Explained phases = PausesOfHost(trace);
  AddPasses(trace, &phases);
  pieces_ = phases.Take();
}

}  // namespace ranktap::collector
