#include "collector/facts/roofline/join_readings.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "collector/facts/steps.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using Sizes = std::array<uint32_t, 3>;

// Kernels of a name and shape have a number.
class KernelKinds {
 public:
  explicit KernelKinds(bool by_shape) : by_shape_(by_shape) {}
  uint32_t Of(const std::string& function, const Sizes& grid, const Sizes& block) {
    const auto next = static_cast<uint32_t>(kinds_.size());
    return kinds_
        .try_emplace({function, by_shape_ ? grid : Sizes{}, by_shape_ ? block : Sizes{}}, next)
        .first->second;
  }
  size_t size() const { return kinds_.size(); }

 private:
  bool by_shape_;
  std::map<std::tuple<std::string, Sizes, Sizes>, uint32_t> kinds_;
};

struct Launched {
  int64_t at = 0;
  uint32_t kernel = 0, kind = 0;
};

// The run's kernels of the kinds that were measured, in the order of their launches.
std::vector<Launched> LaunchedOf(const Trace& trace, size_t measured, KernelKinds* kinds) {
  std::vector<Launched> launched;
  std::map<uint32_t, std::string> functions;
  const Kernels& kernels = trace.kernels;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    if (kernels.start[i] == kUntimed) continue;
    const auto [function, is_new] = functions.try_emplace(kernels.name[i]);
    if (is_new) {
      function->second =
          BaseKernelName(ReadableKernelName(trace.dictionary.String(kernels.name[i])));
    }
    const proto::LaunchShape* const shape = trace.dictionary.Shape(kernels.shape[i]);
    const Sizes grid = shape == nullptr ? Sizes{} : std::to_array(shape->grid),
                block = shape == nullptr ? Sizes{} : std::to_array(shape->block);
    const uint32_t kind = kinds->Of(function->second, grid, block);
    if (kind >= measured) continue;
    const uint32_t launch = kernels.launch[i];
    launched.push_back(
        {launch < trace.api_calls.size() ? trace.api_calls.start[launch] : kernels.start[i], i,
         kind});
  }
  SortRows(&launched, [](const Launched& a, const Launched& b) { return a.at < b.at; });
  return launched;
}

size_t FirstOfSteps(const Trace& trace, const std::vector<Launched>& launched) {
  for (const Step& step : DetectSteps(trace).list) {
    if (step.warm_up) continue;
    const auto at = std::ranges::lower_bound(launched, step.start, {}, &Launched::at);
    return static_cast<size_t>(at - launched.begin());
  }
  return 0;
}

// By reading: which of `launched` it is of; kNone: none.
std::vector<uint32_t> Pair(const std::vector<uint32_t>& wanted,
                           const std::vector<Launched>& launched, size_t first, bool* in_order) {
  // Sequences are looked for where they are likely, and among so many launches.
  constexpr size_t kMostSearched = 100'000;
  const auto same = [](const Launched& a, uint32_t b) { return a.kind == b; };
  const auto begin = launched.begin();
  auto found = launched.end();
  for (const size_t from : {first, size_t{0}}) {
    if (launched.size() - from >= wanted.size() &&
        std::equal(wanted.begin(), wanted.end(), begin + static_cast<std::ptrdiff_t>(from),
                   [&same](uint32_t a, const Launched& b) { return same(b, a); })) {
      found = begin + static_cast<std::ptrdiff_t>(from);
      break;
    }
  }
  if (found == launched.end()) {
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(launched.size(), kMostSearched));
    const auto at = std::search(begin, end, wanted.begin(), wanted.end(), same);
    if (at != end) found = at;
  }
  std::vector<uint32_t> pairs(wanted.size(), kNone);
  *in_order = found != launched.end();
  if (*in_order) {
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = static_cast<uint32_t>(found - begin + i);
    return pairs;
  }
  std::map<uint32_t, std::vector<uint32_t>> by_kind;  // the next is the last
  for (size_t i = launched.size(); i > first; --i) {
    by_kind[launched[i - 1].kind].push_back(static_cast<uint32_t>(i - 1));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<uint32_t>& left = by_kind[wanted[i]];
    if (left.empty()) continue;
    pairs[i] = left.back();
    left.pop_back();
  }
  return pairs;
}

JoinedReadings JoinReadings(std::vector<ReadKernel> readings, const Trace& trace) {
  JoinedReadings joined;
  joined.by_shape =
      std::ranges::any_of(readings, [](const ReadKernel& kernel) { return kernel.grid[0] > 0; });
  KernelKinds kinds(joined.by_shape);
  std::vector<uint32_t> wanted;
  for (const ReadKernel& kernel : readings) {
    wanted.push_back(kinds.Of(BaseKernelName(kernel.name), kernel.grid, kernel.block));
  }
  const std::vector<Launched> launched = LaunchedOf(trace, kinds.size(), &kinds);
  const std::vector<uint32_t> pairs =
      Pair(wanted, launched, FirstOfSteps(trace, launched), &joined.in_order);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool is_there = pairs[i] != kNone;
    if (is_there) {
      ++joined.joined;
    } else {
      ++joined.missing[BaseKernelName(readings[i].name)];
    }
    joined.kernels.push_back(
        {std::move(readings[i]), is_there ? launched[pairs[i]].kernel : kNone});
  }
  const auto start = [&trace](const JoinedReadings::Joined& of) {
    return of.kernel == kNone ? kUntimed : trace.kernels.start[of.kernel];
  };
  SortRows(&joined.kernels, [&start](const auto& a, const auto& b) { return start(a) < start(b); });
  return joined;
}

using KnownReadings = std::optional<JoinedReadings>;

}  // namespace

const JoinedReadings& KnowReadings(std::vector<ReadKernel> readings, const Trace& trace) {
  return *trace.memo.Get<KnownReadings>(
      [&readings, &trace] { return JoinReadings(std::move(readings), trace); });
}

const JoinedReadings* KnownReadingsOf(const Trace& trace) {
  const KnownReadings& known = trace.memo.Get<KnownReadings>([] { return std::nullopt; });
  return known ? &*known : nullptr;
}

}  // namespace ranktap::collector
