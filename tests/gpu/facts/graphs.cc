// Graphs: as a whole and by node, whether there is a way back, graphs from before, device memory.
#include <algorithm>
#include <string>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

struct Graph {
  cudaStream_t stream = nullptr;
  cudaGraphExec_t exec = nullptr;
};

// A row of `nodes` kernels.
Graph MakeGraph(int nodes) {
  Graph made;
  cudaGraph_t graph = nullptr;
  cudaStreamCreate(&made.stream);
  cudaStreamBeginCapture(made.stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < nodes; ++i) launch_kernel(made.stream);
  cudaStreamEndCapture(made.stream, &graph);
  Say("instantiate", cudaGraphInstantiate(&made.exec, graph, 0));
  return made;
}

void SayGraphRecords(const std::vector<Copy>& records) {
  int64_t graphs = 0, nodes = 0, untimed = 0;
  for (const Copy& copy : records) graphs += copy.record().kind == Kind::kGraphTrace ? 1 : 0;
  for (const KernelRecord& kernel : Kernels(records)) {
    ++nodes;
    untimed += kernel.start == 0 ? 1 : 0;
  }
  Say("graphs", graphs);
  Say("nodes", nodes);
  Say("nodes_without_times", untimed);
  size_t dropped = 0;
  (void)Cupti().api.ActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  Say("dropped", static_cast<int64_t>(dropped));
  Say("buffers", static_cast<int64_t>(BuffersAskedFor()));
}

void AskGraph(bool whole, int nodes) {
  if (!Subscribe(Calls::kBoth)) return;
  if (whole) Enable(Kind::kGraphTrace);
  Enable(Kind::kConcurrentKernel);
  const Graph graph = MakeGraph(nodes);
  const int launches = std::max(2, nodes / 10);
  uint64_t host_ns = 0;
  const uint64_t begin = MonotonicNs();
  for (int i = 0; i < launches; ++i) {
    const uint64_t entered = MonotonicNs();
    cudaGraphLaunch(graph.exec, graph.stream);
    host_ns += MonotonicNs() - entered;
  }
  cudaStreamSynchronize(graph.stream);
  Say("launches", launches);
  Say("host_ns_a_launch", static_cast<int64_t>(host_ns) / launches);
  Say("ns_a_launch", static_cast<int64_t>(MonotonicNs() - begin) / launches);
  SayGraphRecords(TakeRecords(false));
}

// Whether the graph's records have the id of the call that launched it. Makes the graph in its
// first session, for what is instantiated before may be told otherwise.
void SayJoined(const char* key, Graph& graph) {
  Seen seen;
  Watch(&seen);
  if (!Subscribe(Calls::kBoth)) return;
  Enable(Kind::kGraphTrace);
  Enable(Kind::kConcurrentKernel);
  if (graph.exec == nullptr) graph = MakeGraph(10);
  for (int i = 0; i < 5; ++i) cudaGraphLaunch(graph.exec, graph.stream);
  int64_t joined = 0, others = 0;
  for (const Copy& copy : TakeRecords(true)) {
    if (copy.record().kind != Kind::kGraphTrace) continue;
    const auto& record = reinterpret_cast<const GraphTraceRecord&>(copy.record());
    ++(seen.outermost.contains(record.correlation) ? joined : others);
  }
  Disable(Kind::kConcurrentKernel);
  Disable(Kind::kGraphTrace);
  Unsubscribe();
  Watch(nullptr);
  SayRaw(key,
         "{\"joined\":" + std::to_string(joined) + ",\"others\":" + std::to_string(others) + "}");
}

// What three launches of a graph leave now.
void SayThreeLaunches(const std::string& key, const Graph& graph) {
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(graph.exec, graph.stream);
  const std::vector<Copy> records = TakeRecords(false);
  const auto is_graph = [](const Copy& copy) { return copy.record().kind == Kind::kGraphTrace; };
  Say(key + "_graphs", std::ranges::count_if(records, is_graph));
  Say(key + "_nodes", static_cast<int64_t>(Kernels(records).size()));
}

// A graph of ten nodes that is made while CUPTI is off, then what it leaves once CUPTI is on.
void AskOldGraph(bool whole) {
  const Graph old = MakeGraph(10);
  if (!Subscribe(Calls::kNone)) return;
  if (whole) Enable(Kind::kGraphTrace);
  Enable(Kind::kConcurrentKernel);
  SayThreeLaunches("old", old);
  SayThreeLaunches("new", MakeGraph(10));
}

int64_t FreeBytes() {
  size_t free = 0, all = 0;
  cudaMemGetInfo(&free, &all);
  return static_cast<int64_t>(free);
}

}  // namespace

void AskGraphWhole(int launches) { AskGraph(true, launches); }
void AskGraphNodes(int launches) { AskGraph(false, launches); }

void AskOldGraphWhole(int) { AskOldGraph(true); }
void AskOldGraphNodes(int) { AskOldGraph(false); }

// Is there a way back from whole graphs to nodes: by the kind, by another subscription?
void AskGraphMode(int) {
  if (!Subscribe(Calls::kNone)) return;
  Enable(Kind::kConcurrentKernel);
  const Graph old = MakeGraph(10);
  SayThreeLaunches("nodes", old);
  Enable(Kind::kGraphTrace);
  SayThreeLaunches("whole", old);
  Disable(Kind::kGraphTrace);
  SayThreeLaunches("off_again", old);
  SayThreeLaunches("off_again_new", MakeGraph(10));
  Disable(Kind::kConcurrentKernel);
  Unsubscribe();
  if (!Subscribe(Calls::kNone)) return;
  Enable(Kind::kConcurrentKernel);
  SayThreeLaunches("resubscribed", old);
  SayThreeLaunches("resubscribed_new", MakeGraph(10));
}

// Under a limit of eight buffers, how many nodes have times, and what is taken of the device?
void AskDevicePool(int nodes) {
  size_t limit = 8, bytes = sizeof(limit);
  Say("set_limit",
      Cupti().api.ActivitySetAttribute(kAttributeDeviceBufferPoolLimit, &bytes, &limit));
  const int64_t before = FreeBytes();
  if (!Subscribe(Calls::kNone)) return;
  Enable(Kind::kConcurrentKernel);
  Launch(1);
  (void)TakeRecords(false);
  Say("bytes_at_first", before - FreeBytes());
  const Graph graph = MakeGraph(nodes);
  int64_t all = 0, untimed = 0;
  for (int i = 0; i < nodes; ++i) {
    cudaGraphLaunch(graph.exec, graph.stream);
    if (i % 50 != 49 && i + 1 != nodes) continue;
    for (const KernelRecord& kernel : Kernels(TakeRecords(false))) {
      ++all;
      untimed += kernel.start == 0 ? 1 : 0;
    }
  }
  Say("nodes", all);
  Say("nodes_without_times", untimed);
  Say("bytes_at_last", before - FreeBytes());
}

void AskGraphSecondSession(int) {
  Graph graph, later;
  SayJoined("first_session", graph);
  SayJoined("second_session", graph);
  SayJoined("third_session_another_graph", later);
}

}  // namespace ranktap::gpu
