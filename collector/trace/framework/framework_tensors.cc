#include "collector/trace/framework/framework_tensors.h"

#include <string>
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

constexpr proto::RowFields kSignatureRow = proto::kSignaturesRow;
constexpr uint64_t kAddressMask = (uint64_t{1} << proto::kTensorElementShift) - 1;

class FrameworkTensors {
 public:
  explicit FrameworkTensors(Trace* trace) : trace_(trace) {}

  void Take() {
    Ranges& marks = trace_->marks;
    std::vector<uint32_t> tensors, outputs, kept;
    for (uint32_t row = 0; row < marks.size(); ++row) {
      const uint32_t type = marks.payload_type.At(row);
      (type == proto::kTensorPayload    ? tensors
       : type == proto::kOutputsPayload ? outputs
                                        : kept)
          .push_back(row);
    }
    if (kept.size() == marks.size()) return;
    FindOperators();
    ReadOutputs(outputs);
    ReadTensors(tensors);
    const size_t rows = marks.size();
    ForEachColumnOf(marks, [rows](auto& column) {
      if (!column.empty()) column.PadTo(rows);
    });
    PermuteTable(marks, kept);
  }

 private:
  // At which one thread begins or ends one operator.
  struct Moment {
    int64_t time;
    uint16_t writer;
    bool operator==(const Moment&) const = default;
  };
  struct HashMoment {
    size_t operator()(const Moment& moment) const {
      return std::hash<uint64_t>{}(static_cast<uint64_t>(moment.time) * 0x9e37'79b9'7f4a'7c15 +
                                   moment.writer);
    }
  };
  using ByMoment = std::unordered_map<Moment, uint32_t, HashMoment>;

  void FindOperators() {
    const auto& ops = trace_->operators;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      starting_.emplace(Moment{ops.start[op], ops.writer[op]}, op);
      ending_.emplace(Moment{ops.end[op], ops.writer[op]}, op);
    }
  }

  uint32_t OperatorOf(const ByMoment& operators, uint32_t mark) const {
    const auto found =
        operators.find(Moment{trace_->marks.start[mark], trace_->marks.writer[mark]});
    return found == operators.end() ? kNone : found->second;
  }

  void ReadOutputs(const std::vector<uint32_t>& rows) {
    struct Signature {
      uint32_t shapes = 0, types = 0;
    };
    std::unordered_map<uint64_t, Signature> signatures;
    for (const std::string_view line :
         MarkedLines(*trace_, kOperatorDomain, proto::kSignaturesMark)) {
      const Json row = ParseJson(line);
      if (!row.is_array() || row.size() != kSignatureRow.size() ||
          !row[kSignatureRow["number"]].is_number_unsigned())
        continue;
      if (!row[kSignatureRow["shapes"]].is_string() || !row[kSignatureRow["types"]].is_string())
        continue;
      signatures[row[kSignatureRow["number"]].get<uint64_t>()] = {
          .shapes = Intern(row[kSignatureRow["shapes"]].text()),
          .types = Intern(row[kSignatureRow["types"]].text())};
    }
    auto& ops = trace_->operators;
    const Ranges& marks = trace_->marks;
    for (const uint32_t row : rows) {
      const uint32_t op = OperatorOf(ending_, row);
      if (op == kNone) continue;
      Set(&ops.record_function, op, uint64_t{marks.color.At(row)} << 32 | marks.category.At(row));
      const auto found = signatures.find(marks.payload.At(row));
      if (found == signatures.end()) continue;
      Set(&ops.output_shapes, op, found->second.shapes);
      Set(&ops.output_types, op, found->second.types);
    }
  }

  void ReadTensors(const std::vector<uint32_t>& rows) {
    const Ranges& marks = trace_->marks;
    for (const uint32_t row : rows) {
      const uint64_t payload = marks.payload.At(row);
      const bool is_output = (payload & proto::kTensorIsOutput) != 0;
      const uint32_t op = OperatorOf(is_output ? ending_ : starting_, row);
      if (op == kNone) continue;
      trace_->tensor_uses.push_back(
          {.time = marks.start[row],
           .op = op,
           .place = static_cast<uint8_t>(payload >> proto::kTensorPlaceShift &
                                         (proto::kMostTensorPlaces - 1)),
           .element = static_cast<uint16_t>(payload >> proto::kTensorElementShift &
                                            (proto::kMostTensorElements - 1)),
           .is_output = is_output,
           .tensor = payload & kAddressMask,
           .memory = uint64_t{marks.color.At(row)} << 32 | marks.category.At(row)});
    }
  }

  template <typename T>
  static void Set(OptionalColumn<T>* column, uint32_t row, T value) {
    if (value == T{}) return;
    column->PadTo(size_t{row} + 1);
    (*column)[row] = value;
  }

  uint32_t Intern(const std::string& text) {
    const auto [at, is_new] = strings_.try_emplace(text, 0);
    if (is_new && !text.empty()) at->second = trace_->dictionary.AppendString(text);
    return at->second;
  }

  Trace* trace_;
  ByMoment starting_, ending_;
  std::unordered_map<std::string, uint32_t> strings_;
};

}  // namespace

void TakeFrameworkTensors(Trace* trace) { FrameworkTensors(trace).Take(); }

}  // namespace ranktap::collector
