// A framework's operators and Python calls as events of a Perfetto trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collector/export/perfetto/perfetto_annotations.h"
#include "collector/export/perfetto/perfetto_exporter.h"

namespace ranktap::collector {

class FrameworkEvents {
 public:
  explicit FrameworkEvents(const PerfettoTrace* state);

  // Valid until the next call.
  PerfettoEvent Operator(size_t row);
  PerfettoEvent PythonCall(size_t row);

 private:
  struct Arrow {
    uint32_t op;
    uint64_t id;
  };
  void FindArrows();
  void FindTensorArrows();
  // The operator that begins at this moment on the thread; kNone: none that is kept.
  uint32_t OperatorAt(int64_t start, uint16_t writer) const;
  std::span<const uint64_t> Take(const std::vector<Arrow>& arrows, uint32_t op,
                                 std::vector<uint64_t>* ids);
  void AddText(Note note, uint32_t text);
  void AddCollective(uint32_t number);

  const PerfettoTrace& state_;
  const Trace& trace_;
  Annotations arguments_;
  std::vector<Arrow> from_, to_;  // by op
  std::vector<uint64_t> leaving_, arriving_;
};

}  // namespace ranktap::collector
