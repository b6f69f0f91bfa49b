#include "collector/trace/framework/framework_operators.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "collector/trace/table_columns.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"

namespace ranktap::collector {
namespace {

// torch/csrc/profiler/util.cpp, getNvtxStr.
constexpr std::string_view kIdMark = ", op_id = ", kSequenceMark = ", seq = ",
                           kSizesMark = ", sizes = ", kProducersMark = ", input_op_ids = ";
// Autograd's evaluation of a node; its scope is known without the observer.
constexpr std::string_view kNodePrefix = "autograd::engine::evaluate_function: ";
// As agent/sources/torch/python/loader.py calls our own files.
constexpr std::string_view kOwnFile = "<ranktap/";

constexpr proto::RowFields kSignature = proto::kSignaturesRow;
constexpr proto::RowFields kStack = proto::kStacksRow;
constexpr proto::RowFields kObserved = proto::kOperatorsRow;

std::optional<uint64_t> NumberAfter(std::string_view mark, std::string_view text) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + mark.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

// "aten::mm" of "aten::mm, seq = 7, op_id = 12"; seq is not there without autograd.
std::string_view PlainName(std::string_view range) {
  const size_t id = range.rfind(kIdMark);
  return range.substr(0, std::min(id, range.substr(0, id).rfind(kSequenceMark)));
}

std::string_view Sizes(std::string_view range) {
  const size_t at = range.rfind(kSizesMark);
  if (at == std::string_view::npos) return {};
  range.remove_prefix(at + kSizesMark.size());
  return range.substr(0, range.find(kProducersMark));
}

class FrameworkOperators {
 public:
  explicit FrameworkOperators(Trace* trace) : trace_(trace), ops_(trace->operators) {}

  void Take() {
    FindRaised();
    MoveRanges();
    ReadSignatures();
    ReadStacks();
    if (by_id_.empty()) return;
    for (const std::string_view line :
         MarkedLines(*trace_, kOperatorDomain, proto::kOperatorsMark)) {
      Describe(line);
    }
  }

 private:
  void FindRaised() {
    const Ranges& marks = trace_->marks;
    for (uint32_t row = 0; row < marks.size(); ++row) {
      if (marks.payload_type.At(row) == proto::kRaisedOperatorPayload) {
        raised_.emplace(marks.writer[row], marks.start[row]);
      }
    }
  }

  void MoveRanges() {
    Ranges& ranges = trace_->ranges;
    std::vector<uint32_t> kept;
    for (uint32_t row = 0; row < ranges.size(); ++row) {
      const bool is_operator =
          ranges.payload_type.At(row) == proto::kOperatorPayload ||
          ranges.payload_type.At(row) == proto::kDescribedOperatorPayload ||
          (trace_->dictionary.Domain(ranges.domain[row]).empty() && HasId(ranges.name[row]));
      if (is_operator) {
        AddOperator(ranges, row);
      } else {
        kept.push_back(row);
      }
    }
    const size_t rows = ranges.size();
    if (kept.size() == rows) return;
    ForEachColumnOf(ranges, [rows](auto& column) {
      if (!column.empty()) column.PadTo(rows);
    });
    PermuteTable(ranges, kept);
  }

  // Many ranges share few names.
  bool HasId(uint32_t name) {
    if (trace_->dictionary.String(name).empty()) return false;  // nor is there such a number
    if (name >= has_id_.size()) has_id_.resize(size_t{name} + 1);
    std::optional<bool>& known = has_id_[name];
    if (!known) known = NumberAfter(kIdMark, trace_->dictionary.String(name)).has_value();
    return *known;
  }

  void AddOperator(const Ranges& ranges, uint32_t row) {
    const auto op = static_cast<uint32_t>(ops_.size());
    ops_.start.push_back(ranges.start[row]);
    ops_.end.push_back(ranges.end[row]);
    ops_.writer.push_back(ranges.writer[row]);
    ops_.kind.push_back(static_cast<uint8_t>(OperatorKind::kOperator));
    if (ranges.payload_type.At(row) == proto::kDescribedOperatorPayload) {
      ops_.name.push_back(ranges.name[row]);
      const uint64_t payload = ranges.payload.At(row);
      SetScope(op, static_cast<uint8_t>(payload >> proto::kOperatorScopeShift));
      Set(&ops_.sequence, op, uint64_t{ranges.color.At(row)} << 32 | ranges.category.At(row));
      const uint64_t signature = payload & proto::kMostOperatorStacks;
      const uint64_t stack = payload >> proto::kOperatorStackShift & proto::kMostOperatorStacks;
      if (stack != 0) with_stack_.emplace_back(op, stack);
      if (signature != 0 && !raised_.contains({ranges.writer[row], ranges.end[row]}))
        with_signature_.emplace_back(op, signature);
    } else if (ranges.payload_type.At(row) == proto::kOperatorPayload) {
      ops_.name.push_back(ranges.name[row]);
      const auto sequence = uint64_t{ranges.color.At(row)} << 32 | ranges.category.At(row);
      SetNumbers(op, ranges.payload.At(row), sequence);
    } else {
      // A copy: interning moves the dictionary's strings.
      const std::string text(trace_->dictionary.String(ranges.name[row]));
      ops_.name.push_back(Intern(PlainName(text)));
      const std::optional<uint64_t> sequence = NumberAfter(kSequenceMark, text);
      SetNumbers(op, *NumberAfter(kIdMark, text), sequence ? *sequence + 1 : 0);
      Set(&ops_.shapes, op, Intern(Sizes(text)));
    }
    if (trace_->dictionary.String(ops_.name[op]).starts_with(kNodePrefix)) {
      Set(&ops_.scope, op, kBackwardScope);
    }
  }

  void SetScope(uint32_t op, uint8_t scope) {
    Set(&ops_.scope, op, scope);
    if (scope == kUserScope) ops_.kind[op] = static_cast<uint8_t>(OperatorKind::kAnnotation);
  }

  // Once for each; operators name its number.
  void ReadSignatures() {
    struct Signature {
      uint32_t shapes = 0, types = 0, values = 0;
    };
    std::unordered_map<uint64_t, Signature> signatures;
    for (const std::string_view line :
         MarkedLines(*trace_, kOperatorDomain, proto::kSignaturesMark)) {
      const Json row = ParseJson(line);
      if (!row.is_array() || row.size() != kSignature.size() ||
          !row[kSignature["number"]].is_number_unsigned())
        continue;
      if (!row[kSignature["shapes"]].is_string() || !row[kSignature["types"]].is_string() ||
          !row[kSignature["values"]].is_string())
        continue;
      signatures[row[kSignature["number"]].get<uint64_t>()] = {
          .shapes = Intern(row[kSignature["shapes"]].text()),
          .types = Intern(row[kSignature["types"]].text()),
          .values = Intern(row[kSignature["values"]].text())};
    }
    for (const auto& [op, number] : with_signature_) {
      const auto found = signatures.find(number);
      if (found == signatures.end()) continue;
      Set(&ops_.shapes, op, found->second.shapes);
      Set(&ops_.types, op, found->second.types);
      Set(&ops_.values, op, found->second.values);
    }
  }

  // For a frame "file.py(12): name", for a stack its frames, the innermost first; a last frame 0
  // stands for what was cut off.
  void ReadStacks() {
    std::unordered_map<uint64_t, std::string> frames = {{0, "(truncated)"}};
    std::unordered_map<uint64_t, uint32_t> stacks;
    for (const std::string_view line : MarkedLines(*trace_, kOperatorDomain, proto::kStacksMark)) {
      const Json row = ParseJson(line);
      if (!row.is_array() || row.size() != kStack.size() ||
          !row[kStack["number"]].is_number_unsigned())
        continue;
      if (row[kStack["frames"]].is_string())
        frames[row[kStack["number"]].get<uint64_t>()] = row[kStack["frames"]].get<std::string>();
      if (row[kStack["frames"]].is_array())
        stacks[row[kStack["number"]].get<uint64_t>()] =
            Intern(JoinFrames(row[kStack["frames"]], frames));
    }
    for (const auto& [op, number] : with_stack_) {
      const auto found = stacks.find(number);
      if (found != stacks.end()) Set(&ops_.stack, op, found->second);
    }
  }

  static std::string JoinFrames(const Json& numbers,
                                const std::unordered_map<uint64_t, std::string>& frames) {
    std::string text;
    for (const Json& number : numbers) {
      const auto frame =
          number.is_number_unsigned() ? frames.find(number.get<uint64_t>()) : frames.end();
      if (frame == frames.end() || frame->second.starts_with(kOwnFile)) continue;
      if (!text.empty()) text += ';';
      text += frame->second;
    }
    return text;
  }

  void SetNumbers(uint32_t op, uint64_t id, uint64_t sequence) {
    Set(&ops_.record_function, op, id);
    Set(&ops_.sequence, op, sequence);
    by_id_.emplace(id, op);
  }

  // The observer writes a list of two numbers as [[], []], torch.profiler, and so the model, as [].
  uint32_t ShapesId(const std::string& shapes, const std::string& types) {
    if (shapes.find("[[]", 1) == std::string::npos) return Intern(shapes);
    const auto [known, is_new] = plain_shapes_.try_emplace(shapes + types, 0);
    if (!is_new) return known->second;
    Json lists = ParseJson(shapes);
    const Json kinds = ParseJson(types);
    if (!lists.is_array() || !kinds.is_array()) return known->second = Intern(shapes);
    std::string text = "[";
    for (size_t i = 0; i < lists.size(); ++i) {
      const bool numbers = i < kinds.size() && kinds[i] == "ScalarList";
      text += (i == 0 ? "" : ", ") + (numbers ? "[]" : WriteJson(lists[i]));
    }
    // Between the numbers of one list.
    for (size_t at = text.find(','); at != std::string::npos; at = text.find(',', at + 1)) {
      if (text[at + 1] != ' ') text.insert(at + 1, " ");
    }
    return known->second = Intern(text + "]");
  }

  void Describe(std::string_view line) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() != kObserved.size()) return;
    for (size_t i = 0; i < kObserved["shapes"]; ++i) {
      if (!row[i].is_number_unsigned()) return;
    }
    for (size_t i = kObserved["shapes"]; i < kObserved.size(); ++i) {
      if (!row[i].is_string()) return;
    }
    const auto found = by_id_.find(row[kObserved["id"]].get<uint64_t>());
    if (found == by_id_.end()) return;
    const uint32_t op = found->second;
    Set(&ops_.forward_thread, op, row[kObserved["forward_thread"]].get<uint32_t>());
    SetScope(op, row[kObserved["scope"]].get<uint8_t>());
    Set(&ops_.shapes, op,
        ShapesId(row[kObserved["shapes"]].text(), row[kObserved["types"]].text()));
    Set(&ops_.types, op, Intern(row[kObserved["types"]].text()));
    Set(&ops_.values, op, Intern(row[kObserved["values"]].text()));
  }

  template <typename T>
  static void Set(OptionalColumn<T>* column, uint32_t row, T value) {
    if (value == T{}) return;
    column->PadTo(size_t{row} + 1);
    (*column)[row] = value;
  }

  uint32_t Intern(std::string_view text) {
    if (text.empty()) return 0;
    const auto [at, is_new] = strings_.try_emplace(std::string(text), 0);
    if (is_new) at->second = trace_->dictionary.AppendString(text);
    return at->second;
  }

  Trace* trace_;
  Operators& ops_;
  std::vector<std::optional<bool>> has_id_;                 // by name
  std::unordered_map<std::string, uint32_t> plain_shapes_;  // by shapes and types
  std::unordered_map<uint64_t, uint32_t> by_id_;
  std::vector<std::pair<uint32_t, uint64_t>> with_signature_, with_stack_;  // operator, number
  std::set<std::pair<uint16_t, int64_t>> raised_;                           // writer, end
  std::unordered_map<std::string, uint32_t> strings_;
};

}  // namespace

void TakeFrameworkOperators(Trace* trace) { FrameworkOperators(trace).Take(); }

}  // namespace ranktap::collector
