// Whole graphs would take the nodes from a client of the program's that comes later: they are for
// programs in which none can be, and for those that ask; never where CUPTI may crash on them.
// Runs on: see cupti_graph_mode.h.  May not: call CUPTI.
#include "agent/sources/cupti/cupti_graph_mode.h"

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/interpose/module_symbols.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_client.h"

namespace ranktap::agent::cupti {

void GraphMode::Begin(bool has_cupti) {
  // An interpreter may import a client at any time.
  client_may_come_ = has_cupti || FindExporter("Py_IsInitialized", {}).has_value();
}

void GraphMode::Choose(Session& session, proto::Level level) const {
  if (ClientTookGraphsWhole()) session.TakeGraphsWhole();
  const bool for_client = client_may_come_ && !Config().whole_graphs;
  session.ChooseGraphNodes(level >= proto::Level::kFull || for_client ||
                           session.features().whole_graphs_crash);
  g_callbacks.large_buffers.store(session.graph_nodes(), std::memory_order_relaxed);
}

void GraphMode::TellOfNodes(const Session& session, proto::Level level) {
  const bool lacks = level >= proto::Level::kFull && session.armed() && !session.graph_nodes();
  if (lacks == gap_.is_open()) return;
  if (!lacks) return gap_.End();
  gap_.Begin(proto::GapReason::kLevel,
             "graphs are recorded as a whole since an earlier window or session of this process, "
             "and CUPTI cannot go back to their nodes");
}

void GraphMode::TellOfClient(const Session& session) {
  if (client_told_ || session.graph_nodes()) return;
  client_told_ = true;
  LogAndAnnounce(
      "CUDA graphs were recorded as a whole before the program's own CUPTI client came: CUPTI may "
      "give that client no nodes of graphs (under --level full it does)");
}

}  // namespace ranktap::agent::cupti
