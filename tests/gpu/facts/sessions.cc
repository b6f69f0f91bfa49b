// Coming and going while the program launches, a second client, and graphs.
#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

// The longest of its bodies.
class Longest {
 public:
  template <typename Body>
  void Take(Body&& body) {
    const uint64_t begin = MonotonicNs();
    body();
    ns_ = std::max(ns_, MonotonicNs() - begin);
  }
  int64_t us() const { return static_cast<int64_t>(ns_) / 1000; }

 private:
  uint64_t ns_ = 0;
};

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

}  // namespace

void AskGraphWhole(int launches) { AskGraph(true, launches); }
void AskGraphNodes(int launches) { AskGraph(false, launches); }

void AskGraphSecondSession(int) {
  Graph graph, later;
  SayJoined("first_session", graph);
  SayJoined("second_session", graph);
  SayJoined("third_session_another_graph", later);
}

void AskWindows(int launches) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      Launch(100);
      cudaDeviceSynchronize();
    }
  });
  Longest on, disable, flush, off;
  const int windows = std::clamp(launches / 20, 3, 50);
  size_t records = 0;
  for (int i = 0; i < windows; ++i) {
    on.Take([] {
      if (Subscribe(Calls::kBoth)) Enable(Kind::kConcurrentKernel);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    disable.Take([] { Disable(Kind::kConcurrentKernel); });
    flush.Take([] { (void)Cupti().api.ActivityFlushAll(kFlushForced); });
    off.Take([] { Unsubscribe(); });
    records += TakeRecords(true).size();
  }
  stop = true;
  busy.join();
  Say("windows", windows);
  Say("records", static_cast<int64_t>(records));
  Say("longest_on_us", on.us());
  Say("longest_disable_us", disable.us());
  Say("longest_flush_us", flush.us());
  Say("longest_unsubscribe_us", off.us());
}

void AskSecondSubscriber(int) {
  if (!Subscribe(Calls::kBoth)) return;
  Subscriber second = nullptr;
  Say("second", Cupti().api.Subscribe(
                    &second, [](void*, uint32_t, uint32_t, const void*) {}, nullptr));
  Enable(Kind::kConcurrentKernel);
  Launch(5);
  Say("kernels", static_cast<int64_t>(Kernels(TakeRecords(false)).size()));
}

}  // namespace ranktap::gpu
