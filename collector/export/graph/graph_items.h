// The items that become nodes of a work graph, in the order in which nodes may depend on each
// other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_order.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct HostCollective {
  int64_t start = 0, end = 0;
  std::string type, group;
  uint32_t group_size = 0;
  int64_t bytes = 0;
  uint32_t op = kNone;  // of files of torch.profiler
};

struct GraphItem {
  enum class Kind : uint8_t { kThread, kOperator, kCall, kEventCall, kDevice, kHostCollective };
  int64_t key = 0;  // its place in the order; of a call that waits the end of the wait
  int64_t end = 0;
  Kind kind = Kind::kThread;
  uint32_t row = 0;          // of its table; kDevice: of DeviceTimeline(); else of `collectives`
  uint16_t writer = 0;       // of what is on a host thread
  uint32_t around = kNone;   // row of the operator around a call, or that launched work
  uint32_t awaited = kNone;  // of a call: index into DeviceTimeline()
};

struct GraphItems {
  std::vector<GraphItem> list;              // by key
  std::vector<HostCollective> collectives;  // those on hosts
  std::vector<int64_t> own_ns;              // by operator: its time without what is inside it
};

GraphItems ListGraphItems(const Run& run, const Trace& trace, const DeviceOrder& order,
                          const ExportOptions& options);

// The communication of a call or an operator: "allreduce", "send", ...; empty: none.
std::string CommunicationType(std::string_view name);
// As Chakra's stock files count: what goes in; of a receive what comes out.
int64_t MessageBytes(const Collective& call);
int64_t MessageBytes(const CollectiveRun& run);
// The tensors among an operator's inputs, or outputs, in bytes.
uint64_t TensorBytes(const Trace& trace, uint32_t shapes, uint32_t types);

}  // namespace ranktap::collector
