#include "collector/report/cells.h"

#include <string_view>

namespace ranktap::collector {
namespace {

std::string_view FileOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsInterpreter(std::string_view name) {
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace

std::string ScriptOf(const v1::Process& process) {
  const auto& line = process.command_line();
  if (line.empty()) return std::string(FileOf(process.executable()));
  const std::string_view program = FileOf(line[0]);
  if (!IsInterpreter(program)) return std::string(program);
  for (int i = 1; i < line.size(); ++i) {
    const std::string_view word = line[i];
    if (word == "-c") return "python -c";
    if (word == "-m") return i + 1 < line.size() ? line[i + 1] : std::string(program);
    if (word == "-X" || word == "-W") {
      ++i;  // their value is a word of its own
    } else if (!word.starts_with("-")) {
      return std::string(FileOf(word));
    }
  }
  return std::string(program);
}

std::string RankName(const Trace& trace) {
  if (trace.info.rank) return fmt::format("rank {}", *trace.info.rank);
  const std::string script = ScriptOf(trace.hello.process());
  return script.empty() ? trace.info.file
                        : fmt::format("{} (process {})", script, trace.hello.process().pid());
}

}  // namespace ranktap::collector
