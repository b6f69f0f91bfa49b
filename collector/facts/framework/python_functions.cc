#include "collector/facts/framework/python_functions.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

struct Frame {
  std::string name;
  uint32_t line = 0;
};

// Takes "train.py(12): step" apart.
Frame ParseFrame(std::string_view text) {
  const size_t close = text.rfind("): ");
  const size_t open = close == text.npos ? close : text.rfind('(', close);
  if (open == text.npos) return {std::string(text)};
  Frame frame{std::string(text.substr(0, open)) + std::string(text.substr(close + 1))};
  std::from_chars(text.data() + open + 1, text.data() + close, frame.line);
  return frame;
}

// The outermost first.
std::vector<Frame> ParseStack(std::string_view stack) {
  std::vector<Frame> frames;
  while (!stack.empty()) {
    const size_t end = std::min(stack.find(';'), stack.size());
    if (end > 0) frames.push_back(ParseFrame(stack.substr(0, end)));
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  std::ranges::reverse(frames);
  return frames;
}

class Timeline {
 public:
  explicit Timeline(const Trace& trace)
      : trace_(trace), steps_(trace, DetectSteps(trace)), threads_(trace.writers.size()) {}

  std::vector<PythonFunction> Make() {
    const Operators& ops = trace_.operators;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      if (ops.stack.At(op) != 0 && ops.writer[op] < threads_.size()) Add(op);
    }
    return std::move(functions_);
  }

 private:
  struct Thread {
    std::vector<uint32_t> open;  // rows of functions_, the outermost first
    int64_t step = -1;           // of the last operator
  };

  void Add(uint32_t op) {
    const Operators& ops = trace_.operators;
    Thread& thread = threads_[ops.writer[op]];
    const int64_t step = steps_.IndexAt(ops.start[op]);
    if (step > thread.step + 1 && thread.step >= 0) Close(0, ops.start[op], &thread.open);
    thread.step = step;
    const std::vector<Frame>& frames = FramesOf(ops.stack.At(op));
    size_t same = 0;
    while (same < std::min(frames.size(), thread.open.size()) &&
           functions_[thread.open[same]].name == frames[same].name) {
      ++same;
    }
    Close(same, ops.start[op], &thread.open);
    for (size_t i = same; i < frames.size(); ++i) {
      const uint32_t parent = thread.open.empty() ? kNone : thread.open.back();
      thread.open.push_back(static_cast<uint32_t>(functions_.size()));
      functions_.push_back({.start = ops.start[op],
                            .name = frames[i].name,
                            .line = frames[i].line,
                            .parent = parent,
                            .writer = ops.writer[op]});
    }
    for (const uint32_t row : thread.open) {
      functions_[row].end = std::max(functions_[row].end, ops.end[op]);
    }
  }

  // All but the outermost `kept`. An operator may still run that one of them called.
  void Close(size_t kept, int64_t time, std::vector<uint32_t>* open) {
    for (size_t i = kept; i < open->size(); ++i) {
      PythonFunction& function = functions_[(*open)[i]];
      function.end = std::min(function.end, time);
    }
    open->resize(kept);
  }

  const std::vector<Frame>& FramesOf(uint32_t stack) {
    const auto [frames, is_new] = frames_.try_emplace(stack);
    if (is_new) frames->second = ParseStack(trace_.dictionary.String(stack));
    return frames->second;
  }

  const Trace& trace_;
  StepFinder steps_;
  std::vector<Thread> threads_;
  std::vector<PythonFunction> functions_;
  std::unordered_map<uint32_t, std::vector<Frame>> frames_;  // by Dictionary::String
};

}  // namespace

std::vector<PythonFunction> PythonFunctions(const Trace& trace) {
  // Files of torch.profiler have the calls themselves.
  if (!trace.is_ours() || trace.operators.stack.empty()) return {};
  return Timeline(trace).Make();
}

}  // namespace ranktap::collector
