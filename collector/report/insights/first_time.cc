#include "collector/report/insights/first_time.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

// A first call that searches, loads or sets up lasts so much longer than later ones of its name.
constexpr int64_t kTimesLonger = 10;
constexpr int64_t kLeastFirstNs = 1'000'000;
constexpr int64_t kLeastNs = 50'000;  // of what is named by itself

bool StartsWithAny(std::string_view name, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts,
                             [name](std::string_view start) { return name.starts_with(start); });
}

bool MakesContext(std::string_view api) {
  return StartsWithAny(
      api, {"cuInit", "cuCtxCreate", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxReset",
            "cudaInitDevice", "hipInit", "hipCtxCreate", "hipDevicePrimaryCtx"});
}

// The runtime makes its context in whatever is called first: cudaFree(0), cudaSetDevice,
// cudaMalloc.
bool MayMakeContext(std::string_view api) {
  return StartsWithAny(
      api, {"cudaFree", "cudaSetDevice", "cudaMalloc", "cudaStreamCreate", "cudaEventCreate",
            "cudaHostAlloc", "hipFree", "hipSetDevice", "hipMalloc", "hipStreamCreate"});
}

struct Cost {
  int64_t start = 0, end = 0;
  FirstTime kind{};
  std::string_view name;
};

class Costs {
 public:
  explicit Costs(const RankFacts& rank) : rank_(rank), trace_(rank.trace()) {
    AddCalls();
    AddNamed(trace_.operators);
    AddNamed(trace_.ranges);
    AddNamed(trace_.python_calls);
    AddFirstOperators();
    for (const proto::JitEvent& jit : trace_.jits) {
      costs_.push_back({static_cast<int64_t>(jit.start_ns), static_cast<int64_t>(jit.end_ns),
                        FirstTime::kCompiling, "the driver's own compiler"});
    }
  }

  FirstTimeCosts Take() {
    std::erase_if(costs_, [](const Cost& cost) { return cost.end - cost.start < kLeastNs; });
    if (costs_.empty()) return {};
    std::vector<Interval> idle;
    rank_.ForEachLost(kIdleCauses, [&idle](const LostPiece& piece) {
      Append({piece.start, piece.end}, &idle);
    });
    // The inner and so shorter first: each moment is told once.
    std::ranges::stable_sort(costs_, {}, [](const Cost& cost) { return cost.end - cost.start; });
    FirstTimeCosts of;
    for (const Cost& cost : costs_) {
      std::vector<Interval> fresh = Difference(Within(idle, cost.start, cost.end), of.idle);
      const int64_t ns = Length(fresh);
      if (ns == 0) continue;
      of.by_kind[static_cast<size_t>(cost.kind)] += ns;
      of.by_name[std::string(cost.name)] += ns;
      of.idle.insert(of.idle.end(), fresh.begin(), fresh.end());
      of.idle = Merged(std::move(of.idle));
    }
    return of;
  }

 private:
  void AddCalls() {
    const ApiCalls& calls = trace_.api_calls;
    struct Api {
      std::string_view name;
      bool loads = false, makes = false, launches = false, may_make = false;
      std::vector<uint32_t> rows;  // of one that loads or makes
      int64_t longest = 0;         // of one whose first call may
    };
    std::map<uint32_t, Api> apis;
    Api* of = nullptr;
    for (uint32_t i = 0, last = 0; i < calls.size(); ++i) {
      if (of == nullptr || calls.api[i] != last) {
        last = calls.api[i];
        const auto [at, is_new] = apis.try_emplace(last);
        of = &at->second;
        if (is_new) {
          const std::string_view name = trace_.dictionary.Api(last).name;
          const bool loads = LoadsCode(name), makes = MakesContext(name);
          *of = {name, loads, makes, name.find("Launch") != name.npos, MayMakeContext(name), {}, 0};
        }
      }
      if (of->loads || of->makes) {
        of->rows.push_back(i);
      } else if (of->launches || of->may_make) {
        of->longest = std::max(of->longest, calls.end[i] - calls.start[i]);
      }
    }
    for (const auto& [id, api] : apis) {
      for (const uint32_t row : api.rows) {
        costs_.push_back({calls.start[row], calls.end[row],
                          api.loads ? FirstTime::kLoading : FirstTime::kContext, api.name});
      }
      // A lazily loaded kernel is loaded by its first launch.
      if (api.longest < kLeastFirstNs) continue;
      std::vector<uint32_t> rows;
      for (uint32_t i = 0; i < calls.size(); ++i) {
        if (calls.api[i] == id) rows.push_back(i);
      }
      AddFirst(calls, rows, api.launches ? FirstTime::kLoading : FirstTime::kContext, api.name);
    }
  }
  // Those of `rows` that last far longer than most, before the first that does not.
  template <typename Table>
  void AddFirst(const Table& table, const std::vector<uint32_t>& rows, FirstTime kind,
                std::string_view name) {
    if (rows.size() < 2) return;
    const bool any_is_long = std::ranges::any_of(rows, [&table](uint32_t row) {
      return table.end[row] - table.start[row] >= kLeastFirstNs;
    });
    if (!any_is_long) return;
    std::vector<int64_t> lengths;
    lengths.reserve(rows.size());
    for (const uint32_t row : rows) lengths.push_back(table.end[row] - table.start[row]);
    std::ranges::nth_element(lengths,
                             lengths.begin() + static_cast<int64_t>((lengths.size() - 1) / 2));
    const int64_t usual = lengths[(lengths.size() - 1) / 2];
    for (const uint32_t row : rows) {
      const int64_t length = table.end[row] - table.start[row];
      if (length < kLeastFirstNs || length / kTimesLonger < usual) {
        if (kind == FirstTime::kLoading) continue;  // other kernels load later
        break;
      }
      costs_.push_back({table.start[row], table.end[row], kind, name});
    }
  }
  template <typename Named>
  void AddNamed(const Named& table) {
    std::map<uint32_t, bool> compiles;
    for (size_t i = 0; i < table.size(); ++i) {
      const auto [known, is_new] = compiles.try_emplace(table.name[i]);
      const std::string_view name = trace_.dictionary.String(table.name[i]);
      if (is_new) known->second = Compiles(name);
      if (known->second) {
        costs_.push_back({table.start[i], table.end[i], FirstTime::kCompiling, name});
      }
    }
  }
  // "aten::cudnn_convolution": cuDNN searches, cuBLAS makes its handle; the first tensor of a
  // device makes its context.
  void AddFirstOperators() {
    const Operators& ops = trace_.operators;
    std::map<std::tuple<uint32_t, uint32_t>, std::vector<uint32_t>> alike;  // name, shapes
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops.kind[i] != static_cast<uint8_t>(OperatorKind::kOperator)) continue;
      alike[{ops.name[i], ops.shapes.At(i)}].push_back(i);
    }
    for (const auto& [key, rows] : alike) {
      const std::string_view name = trace_.dictionary.String(std::get<0>(key));
      const bool makes_room = name.starts_with("aten::empty");
      AddFirst(ops, rows, makes_room ? FirstTime::kContext : FirstTime::kFirstCall, name);
    }
  }

  const RankFacts& rank_;
  const Trace& trace_;
  std::vector<Cost> costs_;
};

}  // namespace

bool LoadsCode(std::string_view api) {
  return StartsWithAny(api, {"cuModuleLoad", "cuLibraryLoad", "cuLinkComplete", "cudaLibraryLoad",
                             "hipModuleLoad", "nvrtcCompile"});
}

// "Torch-Compiled Region" and "TorchDynamo Cache Lookup" come with each call of compiled code.
bool Compiles(std::string_view name) {
  if (name == proto::kCompilationPhase) return true;
  for (const std::string_view part :
       {"(dynamo_timed)", "_dynamo/convert_frame.py", "compile_fx", "triton/compiler/compiler.py",
        "nvrtc", "inductor_compile", "cpp_extension.py"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

FirstTime FirstTimeCosts::Most() const {
  return static_cast<FirstTime>(std::ranges::max_element(by_kind) - by_kind.begin());
}

FirstTimeCosts FirstTimeCostsOf(const RankFacts& rank) { return Costs(rank).Take(); }

std::string_view AdviceOn(FirstTime kind) {
  switch (kind) {
    case FirstTime::kContext:
      return "A process pays for its context once: measure after a warm-up, and keep the process "
             "for the next job instead of starting another.";
    case FirstTime::kLoading:
      return "Run a warm-up pass before what counts; CUDA_MODULE_LOADING=LAZY loads only what "
             "runs, EAGER all of it at the start.";
    case FirstTime::kCompiling:
      return "Run a warm-up pass before what counts, and keep the compilers' caches between runs "
             "(TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, CUDA_CACHE_PATH, TORCH_EXTENSIONS_DIR).";
    case FirstTime::kFirstCall:
      return "Run a warm-up pass with the shapes that follow; torch.backends.cudnn.benchmark = "
             "False leaves out cuDNN's search.";
  }
  __builtin_unreachable();
}

}  // namespace ranktap::collector
