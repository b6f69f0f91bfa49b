#include "collector/report/device/operator_patterns.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ranktap::collector {
namespace {

// Polynomial over the field of 2^61 - 1 elements.
class SequenceHash {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x1b873593'2d51ull;

  static uint64_t Times(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    const uint64_t sum =
        static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
  }
  static uint64_t Extend(uint64_t hash, uint32_t symbol) {
    const uint64_t sum = Times(hash, kBase) + symbol + 1;
    return sum >= kPrime ? sum - kPrime : sum;
  }
};

struct Launched {
  int64_t called = 0, start = 0, length = 0;
  uint32_t symbol = 0;
};

// The work that one thread put on the devices, in the order of its calls.
class ThreadWork {
 public:
  std::vector<Launched> work;

  void Finish() {
    std::sort(work.begin(), work.end(), [](const Launched& a, const Launched& b) {
      return std::tie(a.called, a.start, a.symbol) < std::tie(b.called, b.start, b.symbol);
    });
    hashes_.assign(1, 0), powers_.assign(1, 1), total_.assign(1, 0), late_.assign(1, 0);
    for (size_t i = 0; i < work.size(); ++i) {
      hashes_.push_back(SequenceHash::Extend(hashes_.back(), work[i].symbol));
      powers_.push_back(SequenceHash::Times(powers_.back(), SequenceHash::kBase));
      total_.push_back(total_.back() + work[i].length);
      const bool overtakes = i > 0 && work[i].start < work[i - 1].start;
      late_.push_back(late_.back() + (overtakes ? 1 : 0));
    }
  }
  std::pair<size_t, size_t> Between(int64_t start, int64_t end) const {
    const auto first =
        std::lower_bound(work.begin(), work.end(), start,
                         [](const Launched& w, int64_t at) { return w.called < at; });
    const auto last = std::upper_bound(first, work.end(), end,
                                       [](int64_t at, const Launched& w) { return at < w.called; });
    return {static_cast<size_t>(first - work.begin()), static_cast<size_t>(last - work.begin())};
  }
  std::vector<uint32_t> Symbols(size_t first, size_t last) const {
    std::vector<Launched> some(work.begin() + static_cast<std::ptrdiff_t>(first),
                               work.begin() + static_cast<std::ptrdiff_t>(last));
    std::stable_sort(some.begin(), some.end(),
                     [](const Launched& a, const Launched& b) { return a.start < b.start; });
    std::vector<uint32_t> symbols;
    for (const Launched& one : some) symbols.push_back(one.symbol);
    return symbols;
  }
  uint64_t Hash(size_t first, size_t last) const {
    if (late_[last] == late_[std::min(first + 1, last)]) {
      const uint64_t before = SequenceHash::Times(hashes_[first], powers_[last - first]);
      return hashes_[last] >= before ? hashes_[last] - before
                                     : hashes_[last] + SequenceHash::kPrime - before;
    }
    uint64_t hash = 0;
    for (const uint32_t symbol : Symbols(first, last)) hash = SequenceHash::Extend(hash, symbol);
    return hash;
  }
  int64_t Total(size_t first, size_t last) const { return total_[last] - total_[first]; }

 private:
  std::vector<uint64_t> hashes_, powers_;
  std::vector<int64_t> total_;
  std::vector<uint32_t> late_;  // how many began before the one called before them
};

std::vector<ThreadWork> WorkByThread(const Trace& trace, size_t t, const DeviceNames& names,
                                     DeviceNames::Timeline timeline, int64_t cutoff) {
  std::vector<ThreadWork> threads(trace.writers.size());
  for (const DeviceSpan& span : timeline(trace)) {
    if (span.launch == kNone || span.table == DeviceSpan::Table::kOperator) continue;
    const uint16_t writer = trace.api_calls.writer[span.launch];
    const int64_t called = trace.api_calls.start[span.launch];
    if (writer >= threads.size() || called >= cutoff) continue;
    threads[writer].work.push_back({called, span.start, span.end - span.start, names.Of(t, span)});
  }
  for (ThreadWork& thread : threads) thread.Finish();
  return threads;
}

// How many operators and Python calls of its thread are around each operator.
std::vector<uint32_t> Depths(const Trace& trace) {
  const Operators& ops = trace.operators;
  const PythonCalls& calls = trace.python_calls;
  std::vector<uint32_t> depths(ops.size(), 0);
  std::vector<std::vector<int64_t>> open(trace.writers.size());  // ends
  size_t call = 0;
  const auto enter = [&open](uint16_t writer, int64_t start, int64_t end) -> uint32_t {
    if (writer >= open.size()) return 0;
    std::vector<int64_t>& stack = open[writer];
    while (!stack.empty() && (stack.back() <= start || stack.back() < end)) stack.pop_back();
    stack.push_back(end);
    return static_cast<uint32_t>(stack.size() - 1);
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    for (; call < calls.size() &&
           (calls.start[call] < ops.start[i] ||
            (calls.start[call] == ops.start[i] && calls.end[call] >= ops.end[i]));
         ++call) {
      enter(calls.writer[call], calls.start[call], calls.end[call]);
    }
    depths[i] = enter(ops.writer[i], ops.start[i], ops.end[i]);
  }
  return depths;
}

// HTA hangs the thread of the backward pass below the main thread's annotations of it, or below the
// steps, where there is one such thread each.
void HangBackwardBelowSteps(const Trace& trace, std::vector<uint32_t>* depths) {
  const Operators& ops = trace.operators;
  std::set<uint16_t> main, backward;
  uint32_t below_backward = 0, below_step = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    if (name.starts_with("ProfilerStep#")) {
      main.insert(ops.writer[i]);
      below_step = (*depths)[i] + 1;
    }
    if (name.starts_with("## backward ##")) below_backward = (*depths)[i] + 1;
    if (name.find("autograd::") != name.npos) backward.insert(ops.writer[i]);
  }
  for (const uint16_t writer : main) backward.erase(writer);
  if (main.size() != 1 || backward.size() != 1) return;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!backward.contains(ops.writer[i])) continue;
    (*depths)[i] += below_backward != 0 ? below_backward : below_step;
  }
}

// Rows of the operators whose work is looked at.
std::vector<uint32_t> Choose(const Trace& trace, const OperatorChoice& choice) {
  std::vector<uint32_t> rows;
  if (choice.name.empty()) {
    for (uint32_t i = 0; i < trace.operators.size(); ++i) rows.push_back(i);
    return rows;
  }
  std::vector<uint32_t> depths = Depths(trace);
  HangBackwardBelowSteps(trace, &depths);
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < trace.operators.size(); ++i) {
    const std::string_view name = trace.dictionary.String(trace.operators.name[i]);
    if (name.find(choice.name) == name.npos) continue;
    if (depths[i] < least) rows.clear();
    least = std::min(least, depths[i]);
    if (depths[i] == least) rows.push_back(i);
  }
  return rows;
}

using Key = std::tuple<std::string, size_t, uint64_t>;

void AddTrace(const Run& run, size_t t, const DeviceNames& names, DeviceNames::Timeline timeline,
              const OperatorChoice& choice, std::map<Key, OperatorPattern>* patterns) {
  const Trace& trace = run.traces[t];
  const Operators& ops = trace.operators;
  const std::vector<uint32_t> rows = Choose(trace, choice);
  if (rows.empty()) return;
  const std::vector<ThreadWork> threads =
      WorkByThread(trace, t, names, timeline, choice.as_hta ? HtaCutoff(trace) : INT64_MAX);
  std::map<std::tuple<uint32_t, size_t, uint64_t>, OperatorPattern*> known;  // by the name's id
  for (const uint32_t row : rows) {
    if (ops.writer[row] >= threads.size()) continue;
    const ThreadWork& thread = threads[ops.writer[row]];
    const auto work = thread.Between(ops.start[row], ops.end[row]);
    const auto [first, last] = work;
    if (last - first < choice.shortest) continue;
    const uint32_t parent = ops.parent[row];
    if (choice.name.empty() && parent != kNone &&
        thread.Between(ops.start[parent], ops.end[parent]) == work) {
      continue;
    }
    const uint64_t hash = thread.Hash(first, last);
    OperatorPattern*& pattern = known[{ops.name[row], last - first, hash}];
    if (pattern == nullptr) {
      std::string name(trace.dictionary.String(ops.name[row]));
      if (!choice.as_hta && name.starts_with("ProfilerStep#")) name = "ProfilerStep*";
      pattern = &(*patterns)[{name, last - first, hash}];
      pattern->name = name;
      if (pattern->symbols.empty()) pattern->symbols = thread.Symbols(first, last);
    }
    ++pattern->count;
    pattern->gpu_ns += thread.Total(first, last);
    pattern->cpu_ns += ops.end[row] - ops.start[row];
    pattern->traces.insert(t);
  }
}

}  // namespace

std::vector<OperatorPattern> FindOperatorPatterns(const Run& run, const DeviceNames& names,
                                                  DeviceNames::Timeline timeline,
                                                  const OperatorChoice& choice) {
  std::map<Key, OperatorPattern> patterns;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    AddTrace(run, t, names, timeline, choice, &patterns);
  }
  std::vector<OperatorPattern> found;
  for (auto& [key, pattern] : patterns) {
    if (pattern.count > 1 || !choice.name.empty()) found.push_back(std::move(pattern));
  }
  return found;
}

}  // namespace ranktap::collector
