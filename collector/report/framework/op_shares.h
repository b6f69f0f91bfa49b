// The shares of a row of *ops*: of what all operators of its rank take.
#pragma once

#include "collector/report/cells.h"
#include "collector/report/framework/op_summary.h"

namespace ranktap::collector {

// Python functions between two operators are in no total: a range around them may take longer.
inline Cell ShareOfCpu(const OpRow& op, int64_t all) {
  return op.cpu_ns > all ? Cell() : Percent(op.cpu_ns, all);
}

// A range on a device is no operator's time.
inline Cell ShareOfDevice(const OpRow& op, int64_t all) {
  const bool is_range = op.on_device && op.is_annotation;
  return is_range || op.self_device_ns > all ? Cell() : Percent(op.self_device_ns, all);
}

}  // namespace ranktap::collector
