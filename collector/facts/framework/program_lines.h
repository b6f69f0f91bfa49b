// The program's own line around what a framework or a driver was called for.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// "train.py(12): step" is; "<built-in ...>", "nn.Module: Linear_0" and files of torch and of Python
// itself are not.
bool IsFrameOfTheProgram(std::string_view frame);
// The innermost frame of "a.py(3): f;b.py(9): g" that is neither PyTorch's nor Python's own; where
// all are, the innermost that is not PyTorch's. Empty: there is none.
std::string_view ProgramLineOf(std::string_view stack);

// "train.py(12): step": the innermost Python frame that is not PyTorch's own. Empty: not known.
// Views live as long as this. Safe from several threads.
class ProgramLines {
 public:
  explicit ProgramLines(const Trace& trace);
  // By the stack of the operator, or of the nearest around it that has one.
  std::string_view OfOperator(uint32_t op) const;
  // By the Python calls that were open (torch.profiler's with_stack); else by operator `op`.
  std::string_view At(uint16_t writer, int64_t time, uint32_t op) const;

 private:
  struct OpenCall {
    uint32_t row = 0;
    uint32_t parent = kNone;  // position in the same list
  };
  void NestCalls();

  const Trace& trace_;
  std::vector<std::vector<OpenCall>> calls_;                    // by writer, by start
  mutable std::mutex mutex_;                                    // of what follows
  mutable std::unordered_map<uint32_t, std::string> of_stack_;  // by Dictionary::String
};

}  // namespace ranktap::collector
