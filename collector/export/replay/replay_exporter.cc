// A script that runs a run's operators again: replay.py, and a line of JSON for each rank. Calls
// that differ in nothing but their addresses are told once.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/replay/replay_script.h"
#include "collector/export/run_clock.h"
#include "collector/facts/gloo_calls.h"
#include "collector/trace/execution_trace.h"

namespace ranktap::collector {
namespace {

using Kind = TraceValue::Kind;

// Values of one call. Storages are numbered within it, so that calls on other memory are equal.
class CallText {
 public:
  std::string Of(const TraceNode& node) {
    text_.Raw("[").Text(node.name).Raw(",").Text(node.schema).Raw(",");
    WriteList(node.inputs);
    text_.Raw("]");
    return text_.str();
  }

 private:
  void WriteList(const std::vector<TraceValue>& values) {
    text_.Raw("[");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) text_.Raw(",");
      Write(values[i]);
    }
    text_.Raw("]");
  }

  void WriteNumbers(std::string_view name, const std::vector<int64_t>& numbers) {
    text_.Raw("\"").Raw(name).Raw("\":[");
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i != 0) text_.Raw(",");
      text_.Number(numbers[i]);
    }
    text_.Raw("],");
  }

  void WriteTensor(const TraceValue& value) {
    const auto storage = storages_.try_emplace(value.storage, storages_.size()).first->second;
    text_.Raw("{");
    WriteNumbers("sizes", value.sizes);
    WriteNumbers("strides", value.strides);
    text_.Raw("\"offset\":").Number(value.offset).Raw(",\"storage\":").Number(storage);
    text_.Raw(",\"type\":").Text(value.type).Raw(",\"device\":").Text(value.text).Raw("}");
  }

  // Python's JSON knows these words.
  void WriteReal(double real) {
    if (std::isfinite(real)) {
      const std::string text = fmt::format("{}", real);
      text_.Raw(std::string_view(text));
      // To Python 3 is another type than 3.0.
      if (text.find_first_of(".e") == text.npos) text_.Raw(".0");
    } else {
      text_.Raw(std::string_view(std::isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity"));
    }
  }

  void Write(const TraceValue& value) {
    switch (value.kind) {
      case Kind::kTensor:
        return WriteTensor(value);
      case Kind::kInteger:
        text_.Number(value.integer);
        return;
      case Kind::kReal:
        return WriteReal(value.real);
      case Kind::kFlag:
        text_.Raw(std::string_view(value.integer != 0 ? "true" : "false"));
        return;
      case Kind::kText:
        text_.Text(value.text);
        return;
      case Kind::kDevice:
        text_.Raw("{\"device\":").Text(value.text).Raw("}");
        return;
      case Kind::kList:
        return WriteList(value.elements);
      case Kind::kNone:
        text_.Raw("null");
        return;
      case Kind::kOther:
        text_.Raw("{\"other\":").Text(value.type).Raw("}");
    }
  }

  JsonText text_;
  std::unordered_map<uint64_t, size_t> storages_;
};

// The operators of one rank, by start, those around others before them.
class RankLine {
 public:
  RankLine(const Trace& trace, uint32_t rank, std::string_view wanted)
      : gloo_calls_(trace), rank_(rank), wanted_(wanted) {
    const auto [end, error] =
        std::from_chars(wanted.data(), wanted.data() + wanted.size(), wanted_number_);
    if (error != std::errc() || end != wanted.data() + wanted.size()) wanted_number_ = 0;
  }

  // Empty: there is no operator with a schema and values.
  std::string Of(const ExecutionTrace& made) {
    std::vector<const TraceNode*> nodes;
    for (const TraceNode& node : made.nodes) {
      if (node.op != kNone) nodes.push_back(&node);
    }
    std::ranges::stable_sort(nodes, {}, [](const TraceNode* node) {
      return std::tuple(node->start, -node->end, node->op);
    });
    for (const TraceNode* const node : nodes) NoteGroup(*node);
    for (const TraceNode* const node : nodes) Add(*node);
    if (!can_run_) return {};
    return Line();
  }

 private:
  bool IsWanted(const TraceNode& node) const {
    return wanted_.empty() || node.name == wanted_ || uint64_t{node.op} + 1 == wanted_number_;
  }

  // The members of a collective's group are known of gloo's operator, which it is around.
  void NoteGroup(const TraceNode& node) {
    const Collective* const call = gloo_calls_.OfOperator(node.op);
    if (call != nullptr && !call->group_ranks.empty()) groups_[node.parent] = call->group_ranks;
  }

  void Add(const TraceNode& node) {
    const auto around = row_of_.find(node.parent);
    if (around == row_of_.end() && !IsWanted(node)) return;
    const std::string call = CallText().Of(node);
    const size_t number = numbers_.try_emplace(call, numbers_.size()).first->second;
    if (number == calls_.size()) calls_.push_back(call);
    can_run_ = can_run_ || !node.schema.empty();
    if (!row_of_.empty()) rows_.Raw(",");
    rows_.Raw("\n[").Number(number).Raw(",");
    rows_.Number(around == row_of_.end() ? int64_t{-1} : static_cast<int64_t>(around->second));
    rows_.Raw(",").Number(node.end - node.start).Raw(",").Number(node.thread);
    rows_.Raw(",").Number(node.sequence).Raw(",").Number(node.forward_thread != 0 ? 1 : 0);
    const auto group = groups_.find(node.id);
    rows_.Raw(",").Text(group == groups_.end() ? std::string() : group->second).Raw("]");
    row_of_.emplace(node.id, row_of_.size());
  }

  std::string Line() const {
    JsonText line;
    line.Raw("{\"rank\":").Number(rank_).Raw(",\"calls\":[");
    for (size_t i = 0; i < calls_.size(); ++i) {
      line.Raw(std::string_view(i == 0 ? "\n" : ",\n")).Raw(calls_[i]);
    }
    line.Raw("],\"runs\":[").Raw(rows_.view()).Raw("]}");
    return line.str();
  }

  GlooCalls gloo_calls_;
  uint32_t rank_;
  std::string_view wanted_;
  uint64_t wanted_number_ = 0;  // the operator's row and 1; 0: none is asked for by number
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::string> calls_;
  std::unordered_map<uint64_t, std::string> groups_;  // by node of the collective
  std::unordered_map<uint64_t, size_t> row_of_;       // by node
  JsonText rows_;
  bool can_run_ = false;
};

// For a raw text of Python's between three quotes: in JSON a quote is in texts alone.
std::string WithoutQuotes(const std::string& json) {
  std::string text;
  for (const char byte : json) {
    if (byte == '\'') {
      text += "\\u0027";
    } else {
      text += byte;
    }
  }
  return text;
}

}  // namespace

std::optional<Failure> WriteReplay(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = *traces[i];
    const ExportOptions own = options.Shifted(RealtimeOffset(run, trace));
    RankLine rank(trace, trace.info.rank.value_or(static_cast<uint32_t>(i)),
                  options.replayed_operator);
    std::string line = rank.Of(BuildExecutionTrace(trace, own.from, own.to));
    if (!line.empty()) lines.push_back(WithoutQuotes(line));
  }
  if (lines.empty()) {
    return Failure{
        options.replayed_operator.empty()
            ? fmt::format("{}: no operator has its values; record with ranktap run --level full "
                          "--tensors=full",
                          traces.front()->path)
            : fmt::format("--operator {}: no such operator was recorded with its values",
                          options.replayed_operator)};
  }
  auto file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  file->Write(ReplayScript());
  file->Write(
      "\n\n# A line of JSON for each rank; a list is broken before each element.\nDATA = (");
  for (const std::string& line : lines) file->Write("\n    r'''" + line + "''',");
  file->Write(")\n\nif __name__ == '__main__':\n    main(DATA)\n");
  return file->Close();
}

}  // namespace ranktap::collector
