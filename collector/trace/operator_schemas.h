// The schemas of operators that PyTorch's dispatcher told in a capture, and what their arguments'
// types tell of values that the agent knows by number only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/operator_values.h"

namespace ranktap::collector {

class OperatorSchemas {
 public:
  explicit OperatorSchemas(const Trace& trace);

  // Empty: not told, or not which of several it is.
  std::string Of(std::string_view name, const RecordedValues& inputs) const;

  // One call, of all that are looked at, before LearnKinds(). A number of a c10::IValue's tag
  // stands for what the schemas of all calls agree on.
  void Saw(std::string_view name, const RecordedValues& inputs);
  void LearnKinds();
  // Sets the type of values of kOther, and of those in lists.
  void NameKind(TraceValue* value) const;

 private:
  struct Schema {
    std::string overload, text;
    std::vector<std::string> types;  // of the arguments
  };
  const Schema* Find(std::string_view name, const RecordedValues& inputs) const;

  std::map<std::string, std::vector<Schema>, std::less<>> schemas_;
  std::map<int64_t, std::string> kinds_;  // by tag; empty: the schemas do not agree
};

// "Tensor", "int[]?", "Generator?" of "f(Tensor self, int[]? dim=None, *, Generator? generator) ->
// Tensor".
std::vector<std::string> ArgumentTypes(std::string_view schema);

}  // namespace ranktap::collector
