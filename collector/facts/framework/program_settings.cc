#include "collector/facts/framework/program_settings.h"

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"

namespace ranktap::collector {

std::optional<ProgramSettings> SettingsOf(const Trace& trace) {
  constexpr proto::RowFields kRow = proto::kSettingsRow;
  std::optional<ProgramSettings> settings;
  for (const std::string_view line : MarkedLines(trace, kOperatorDomain, proto::kSettingsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() < kRow.size()) continue;
    const auto number = [&row](size_t cell) {
      return row[cell].is_number_integer() ? row[cell].get<int64_t>() : 0;
    };
    settings = {.threads = number(kRow["threads"]),
                .cpus = number(kRow["cpus"]),
                .anomaly = number(kRow["anomaly"]) != 0};
  }
  return settings;
}

}  // namespace ranktap::collector
