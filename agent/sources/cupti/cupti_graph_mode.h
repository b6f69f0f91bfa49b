// Whether graphs are recorded node by node or each launch as a whole: one answer a process
// (Session::ChooseGraphNodes), and where it cannot be what the level asks, the trace says so.
// Runs on: the thread inside cuInit before the drain thread, then on that.  May not: call CUPTI.
#pragma once

#include "agent/sources/cupti/cupti_gap.h"
#include "agent/sources/cupti/cupti_session.h"
#include "proto/modes.h"

namespace ranktap::agent::cupti {

class GraphMode {
 public:
  // `has_cupti`: the program has brought CUPTI itself.
  void Begin(bool has_cupti);
  // Before `session` arms.
  void Choose(Session& session, proto::Level level) const;
  // The level is in force.
  void TellOfNodes(const Session& session, proto::Level level);
  // The program's client takes over from `session`.
  void TellOfClient(const Session& session);

 private:
  bool client_may_come_ = true, client_told_ = false;
  // Level full without the nodes of graphs.
  Gap gap_{"full"};
};

}  // namespace ranktap::agent::cupti
