#include "collector/cli/untraced_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "collector/cli/hang_notes_table.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/bad_end.h"
#include "collector/trace/load/run_reader.h"

namespace ranktap::collector {

std::optional<Table> OfUntracedRun(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return std::nullopt;
  const Result<RunFiles> files = FindTraces(paths[0]);
  if (!files || !files->has_info || !files->traces.empty()) return std::nullopt;
  if (OpenRun(paths)) return std::nullopt;  // torch.profiler's files lie there
  const RunInfo& info = files->info;
  if (std::optional<Table> hang = OfHangNotes(paths[0])) return hang;
  const std::string lasted =
      info.end_realtime_ns
          ? fmt::format(" for {}", FormatNs(static_cast<int64_t>(*info.end_realtime_ns -
                                                                 info.start_realtime_ns)))
          : "";
  const bool is_full = info.level == NameOf(v1::LEVEL_FULL);
  Table table{.name = "verdict",
              .title = fmt::format(
                  "{}Nothing was traced: {} ran{}, and no process of it used CUDA, NVTX or {}.",
                  DescribeEnd(info), Printable(fmt::format("{}", fmt::join(info.command, " "))),
                  lasted, is_full ? "PyTorch" : "PyTorch with CUDA"),
              .columns = {}};
  if (!is_full) {
    table.notes.emplace_back("PyTorch on the CPU is recorded by ranktap run --level full");
  }
  table.notes.emplace_back(
      "the lines of any Python program are sampled by ranktap run --sample 10ms");
  table.notes.emplace_back(
      "NVTX ranges show where any other program's time goes: pip install nvtx, with "
      "nvtx.annotate(\"load\"): around its parts, then ranktap run again");
  return table;
}

}  // namespace ranktap::collector
