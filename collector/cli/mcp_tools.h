// The tools of `ranktap mcp`: a question of a program to the runs of one folder, and the answer as
// JSON of at most 2 KiB. Each tool is one of our own verbs, run as a process with limits.
#pragma once

#include <string>

#include "collector/file/json.h"
#include "collector/file/result.h"

namespace ranktap::collector {

inline constexpr size_t kMostAnswerBytes = 2048;

class McpTools {
 public:
  // `root`: the one folder whose runs may be asked about.
  explicit McpTools(std::string root);

  // As tools/list has them: name, description, inputSchema.
  static Json List();
  // The text of the answer. A failure is for the program that asked, and ends nothing.
  Result<std::string> Call(const std::string& name, const Json& arguments) const;

 private:
  std::string root_, self_;
};

}  // namespace ranktap::collector
