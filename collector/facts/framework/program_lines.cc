#include "collector/facts/framework/program_lines.h"

#include <algorithm>

#include "collector/facts/framework/python_stacks.h"

namespace ranktap::collector {
namespace {

constexpr size_t kFramesLookedAt = 32;

}  // namespace

bool IsFrameOfTheProgram(std::string_view frame) {
  if (frame.empty() || frame[0] == '<' || frame.starts_with("nn.Module: ")) return false;
  for (const std::string_view part : {"torch/", "lib/python", "threading.py(", "contextlib.py("}) {
    if (frame.find(part) != frame.npos) return false;
  }
  return true;
}

std::string_view ProgramLineOf(std::string_view stack) {
  std::string_view not_of_torch;
  while (!stack.empty()) {
    const std::string_view frame = stack.substr(0, stack.find(';'));
    stack.remove_prefix(std::min(frame.size() + 1, stack.size()));
    if (frame.find(".py(") == frame.npos && frame[0] != '<') continue;  // of C++
    if (IsFrameOfTheProgram(frame)) return frame;
    if (not_of_torch.empty() && frame.find("torch/") == frame.npos) not_of_torch = frame;
  }
  return not_of_torch;
}

ProgramLines::ProgramLines(const Trace& trace) : trace_(trace), calls_(trace.writers.size()) {
  NestCalls();
}

void ProgramLines::NestCalls() {
  const PythonCalls& calls = trace_.python_calls;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.writer[row] < calls_.size()) calls_[calls.writer[row]].push_back({row});
  }
  for (std::vector<OpenCall>& list : calls_) {
    std::stable_sort(list.begin(), list.end(), [&calls](const OpenCall& a, const OpenCall& b) {
      if (calls.start[a.row] != calls.start[b.row]) return calls.start[a.row] < calls.start[b.row];
      return calls.end[a.row] > calls.end[b.row];
    });
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < list.size(); ++i) {
      while (!open.empty() && calls.end[list[open.back()].row] < calls.end[list[i].row]) {
        open.pop_back();
      }
      list[i].parent = open.empty() ? kNone : open.back();
      open.push_back(i);
    }
  }
}

std::string_view ProgramLines::OfOperator(uint32_t op) const {
  while (op != kNone && trace_.operators.stack.At(op) == 0) op = trace_.operators.parent[op];
  if (op == kNone) return "";
  const uint32_t stack = trace_.operators.stack.At(op);
  const std::lock_guard lock(mutex_);
  const auto [line, is_new] = of_stack_.try_emplace(stack);
  if (!is_new) return line->second;
  for (std::string& frame : InnermostFrames(trace_.dictionary.String(stack), kFramesLookedAt)) {
    if (frame[0] == '<' || frame.find("torch/") != frame.npos) continue;
    line->second = std::move(frame);
    break;
  }
  return line->second;
}

std::string_view ProgramLines::At(uint16_t writer, int64_t time, uint32_t op) const {
  if (writer >= calls_.size() || calls_[writer].empty()) return OfOperator(op);
  const PythonCalls& calls = trace_.python_calls;
  const std::vector<OpenCall>& list = calls_[writer];
  const auto after = std::ranges::upper_bound(
      list, time, {}, [&calls](const OpenCall& call) { return calls.start[call.row]; });
  if (after == list.begin()) return OfOperator(op);
  for (auto i = static_cast<uint32_t>(after - list.begin() - 1); i != kNone; i = list[i].parent) {
    const std::string_view frame = trace_.dictionary.String(calls.name[list[i].row]);
    if (calls.end[list[i].row] >= time && IsFrameOfTheProgram(frame)) return frame;
  }
  return OfOperator(op);
}

}  // namespace ranktap::collector
