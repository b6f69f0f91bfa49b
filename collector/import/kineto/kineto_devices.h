// The kind of devices of a Kineto file. A part of kineto_tables.h.
#pragma once

#include <string_view>

#include "collector/import/kineto/kineto_event.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoDevices {
 public:
  // "mtia_runtime", a process with the label "NPU 0", memory of c10::DeviceType 12.
  void Note(const KinetoEvent& event);
  // Behind the last event: where the file lists no device, those that it uses.
  void NameIn(Trace* trace) const;

 private:
  std::string_view word_;  // of kDeviceWords; empty: GPUs, or not said
};

}  // namespace ranktap::collector
