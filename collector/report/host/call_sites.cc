#include "collector/report/host/call_sites.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/facts/graph_nodes.h"
#include "collector/report/columns.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kStub = "__device_stub__";

struct Place {
  SourceFrame frame;
  std::string module;
};

// The innermost frame of the program's own; without one, the innermost of all.
Place PlaceOf(const Trace& trace, uint32_t stack) {
  Place first;
  bool any = false, after_stub = false;
  for (const uint64_t address : trace.dictionary.Stack(stack).frames) {
    const ResolvedAddress* const resolved = trace.symbols.Find(address);
    if (resolved == nullptr) continue;
    for (const SourceFrame& frame : resolved->frames) {
      // nvcc's stub is called by a function that has the kernel's name: neither is the program's.
      const bool kernel = std::exchange(after_stub, frame.function.starts_with(kStub));
      if (!kernel && !IsCudaFrame(frame, resolved->module)) return {frame, resolved->module};
      if (!any) first = {frame, resolved->module};
      any = true;
    }
  }
  if (!any) first.frame.function = "(unknown)";
  return first;
}

using CallSitesKey = std::tuple<std::string, std::string, uint32_t, std::string, std::string>;

struct Sites {
  std::vector<CallSite*> by_call;                               // row of api_calls; may be nullptr
  std::map<std::pair<uint32_t, uint32_t>, CallSite*> by_stack;  // and api
};

Sites CountCalls(const Trace& trace, std::map<CallSitesKey, CallSite>* sites) {
  const ApiCalls& calls = trace.api_calls;
  Sites found;
  found.by_call.resize(calls.size(), nullptr);
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t stack = calls.stack.At(i);
    if (stack == 0) continue;
    CallSite*& site = found.by_stack[{stack, calls.api[i]}];
    if (site == nullptr) {
      const Place place = PlaceOf(trace, stack);
      const std::string& api = trace.dictionary.Api(calls.api[i]).name;
      site =
          &(*sites)[{place.frame.function, place.frame.file, place.frame.line, place.module, api}];
      site->frame = place.frame;
      site->module = place.module;
      site->api = api;
    }
    site->host.Add(calls.end[i] - calls.start[i]);
    found.by_call[i] = site;
  }
  return found;
}

// A node of a graph belongs to the call that captured it: what launches the graph did not write it.
CallSite* SiteOf(const Trace& trace, const DeviceWork& work, size_t row, const Sites& sites) {
  if (const uint64_t node = work.graph_node.At(row); node != 0) {
    const GraphNode* const made = FindGraphNode(trace, node);
    const auto site =
        made == nullptr ? sites.by_stack.end() : sites.by_stack.find({made->stack, made->api});
    if (site != sites.by_stack.end()) return site->second;
  }
  const uint32_t launch = work.launch[row];
  return launch < sites.by_call.size() ? sites.by_call[launch] : nullptr;
}

void CountWork(const Trace& trace, const DeviceWork& work, const Sites& sites) {
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.start[i] == kUntimed) continue;
    if (CallSite* const site = SiteOf(trace, work, i, sites)) {
      site->gpu_ns += work.end[i] - work.start[i];
    }
  }
}

std::string CountedAs(uint64_t count, std::string_view text) {
  return fmt::format("{} {}", count, text);
}

void AddStackNotes(const Run& run, Table* table) {
  uint64_t with = 0, calls = 0;
  v1::Cost cost;
  std::set<std::string> problems;
  for (const Trace& trace : run.traces) {
    calls += trace.api_calls.size();
    for (size_t i = 0; i < trace.api_calls.size(); ++i) with += trace.api_calls.stack.At(i) != 0;
    cost.set_stacks(cost.stacks() + trace.cost.stacks());
    cost.set_stack_memo_hits(cost.stack_memo_hits() + trace.cost.stack_memo_hits());
    cost.set_stack_memo_errors(cost.stack_memo_errors() + trace.cost.stack_memo_errors());
    cost.set_stack_frames_learnt(cost.stack_frames_learnt() + trace.cost.stack_frames_learnt());
    cost.set_stacks_truncated(cost.stacks_truncated() + trace.cost.stacks_truncated());
    cost.set_stacks_refused(cost.stacks_refused() + trace.cost.stacks_refused());
    problems.insert(trace.symbols.problems().begin(), trace.symbols.problems().end());
  }
  if (with == 0) {
    table->notes.push_back(
        "no call carries a stack; record with ranktap run --stacks=launch (or sync, all)");
    return;
  }
  table->notes.push_back(CountedAs(with, "of ") + CountedAs(calls, "calls carry a stack; ") +
                         CountedAs(cost.stack_memo_hits(), "of ") +
                         CountedAs(cost.stacks(), "came from the memo, ") +
                         CountedAs(cost.stack_frames_learnt(), "addresses were looked up"));
  if (cost.stacks_truncated() + cost.stacks_refused() + cost.stack_memo_errors() > 0) {
    table->notes.push_back(
        CountedAs(cost.stacks_truncated(), "walks lack their outermost frames, ") +
        CountedAs(cost.stacks_refused(), "were not taken, ") +
        CountedAs(cost.stack_memo_errors(), "times the memo was found wrong"));
  }
  table->notes.insert(table->notes.end(), problems.begin(), problems.end());
}

const ColumnsOf<CallSite> kCallSitesColumns = {
    {"function", Unit::kText, "The program's function that called CUDA.",
     [](const CallSite& site) { return site.frame.function; }},
    {"source", Unit::kText, "The file and line of the call.",
     [](const CallSite& site) { return SourceText(site.frame); }},
    {"api", Unit::kText, "The CUDA function.", [](const CallSite& site) { return site.api; }},
    {"calls", Unit::kCount, "The calls of the CUDA function from here.",
     [](const CallSite& site) { return site.host.count; }},
    {"gpu_ns", Unit::kNs, "The device work that these calls launched.",
     [](const CallSite& site) { return site.gpu_ns; }},
    {"host_ns", Unit::kNs, "The host's time in these calls.",
     [](const CallSite& site) { return site.host.total_ns; }},
    {"host_mean_ns", Unit::kNs, "The host's mean time in one call.",
     [](const CallSite& site) { return site.host.mean_ns(); }, Shown::kDetail},
    {"module", Unit::kText, "The shared object that holds the code.",
     [](const CallSite& site) { return site.module; }, Shown::kDetail},
    {"file", Unit::kText, "The source file.", [](const CallSite& site) { return site.frame.file; },
     Shown::kDetail},
    {"line", Unit::kCount, "The line of the source file.",
     [](const CallSite& site) { return int64_t{site.frame.line}; }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that called from here.",
     [](const CallSite& site) { return site.ranks; }, Shown::kDetail},
};

}  // namespace

SourceFrame FrameOfStack(const Trace& trace, uint32_t stack) { return PlaceOf(trace, stack).frame; }

std::string SourceText(const SourceFrame& frame) {
  if (frame.file.empty()) return {};
  return fmt::format("{}:{}", frame.file.substr(frame.file.rfind('/') + 1), frame.line);
}

std::string NativeLineOf(const Trace& trace, uint32_t stack) {
  if (stack == 0 || trace.symbols.empty()) return "";
  const SourceFrame frame = FrameOfStack(trace, stack);
  if (frame.function.empty() || frame.function.starts_with('+')) return "";
  const std::string line = SourceText(frame);
  return line.empty() ? frame.function : frame.function + " at " + line;
}

bool IsCudaFrame(const SourceFrame& frame, std::string_view module) {
  for (const std::string_view library : {"libcuda.so", "libcudart", "libcupti", "libranktap"}) {
    if (module.starts_with(library)) return true;
  }
  for (const std::string_view file : {".cudafe1.stub.c", "/cuda_runtime.h", "/host_runtime.h"}) {
    if (frame.file.ends_with(file)) return true;
  }
  return frame.function.starts_with(kStub) || frame.function.starts_with("cudaLaunchKernel") ||
         frame.function.starts_with("__cudaLaunchKernel");
}

std::vector<CallSite> FindCallSites(const std::vector<Trace>& traces) {
  std::map<CallSitesKey, CallSite> all;
  for (const Trace& trace : traces) {
    std::map<CallSitesKey, CallSite> of_trace;
    const Sites sites = CountCalls(trace, &of_trace);
    CountWork(trace, trace.kernels, sites);
    CountWork(trace, trace.copies, sites);
    CountWork(trace, trace.memsets, sites);
    CountWork(trace, trace.graph_launches, sites);
    for (auto& [key, site] : of_trace) {
      CallSite& sum = all[key];
      sum.frame = site.frame;
      sum.module = site.module;
      sum.api = site.api;
      sum.host.Add(site.host);
      sum.gpu_ns += site.gpu_ns;
      ++sum.ranks;
    }
  }
  std::vector<CallSite> sorted;
  for (auto& [key, site] : all) sorted.push_back(std::move(site));
  SortRows(&sorted, [](const CallSite& a, const CallSite& b) {
    return std::tie(b.gpu_ns, b.host.total_ns) < std::tie(a.gpu_ns, a.host.total_ns);
  });
  return sorted;
}

Table TabulateCallSites(const Run& run, const ReportOptions&) {
  Table table = TableOf("Where in the program CUDA calls come from, all ranks", kCallSitesColumns,
                        FindCallSites(run.traces));
  AddStackNotes(run, &table);
  return table;
}

}  // namespace ranktap::collector
