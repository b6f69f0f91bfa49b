#include "collector/cli/keep.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "collector/cli/command.h"
#include "collector/ingest/store/old_runs.h"
#include "collector/report/human_units.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kLeastBytes = 1u << 20;

bool TakeTrigger(std::string_view name, KeepOptions* options) {
  constexpr std::string_view kSlow = "slow-step";
  if (name == "hang") return options->on_hang = true;
  if (name == "oom") return options->on_out_of_memory = true;
  if (name == "exit") return options->on_exit = true;
  if (name == "signal") return options->on_signal = true;
  if (!name.starts_with(kSlow)) return false;
  name.remove_prefix(kSlow.size());
  options->slow_step = 3;
  if (name.empty()) return true;
  if (!name.starts_with("=")) return false;
  name.remove_prefix(1);
  if (name.ends_with("x")) name.remove_suffix(1);
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), options->slow_step);
  return error == std::errc() && end == name.data() + name.size() && options->slow_step > 1 &&
         options->slow_step <= 1000;
}

}  // namespace

void AddKeepOptions(Arguments* app, KeepOptions* options) {
  app->Add("--keep", &options->keep,
           "keep only the last part of each rank, at least this long: 60s, 5m; ranktap dump saves "
           "it");
  app->Add("--keep-bytes", &options->keep_bytes,
           "with --keep: at most so much of a rank, whatever the time: 512M (a sixth more while "
           "it is written)");
  app->Add("--on", &options->on,
           "with --keep: save it by itself. A list of hang, slow-step=3x, oom, exit, signal; ten "
           "minutes between two of a run, ten in all");
}

std::optional<int> CheckKeepOptions(KeepOptions* options) {
  if (options->keep.empty()) {
    if (options->keep_bytes.empty() && options->on.empty()) return std::nullopt;
    return Complained("--keep-bytes and --on need --keep: add --keep 60s", kWrongUsage);
  }
  const auto time = ParseDuration(options->keep);
  if (!time || *time < 1'000'000'000) {
    return Complained(
        fmt::format("--keep '{}' is not a time from 1 s on; write 60s or 5m", options->keep),
        kWrongUsage);
  }
  options->limits.ns = *time;
  if (!options->keep_bytes.empty()) {
    const auto bytes = ParseBytes(options->keep_bytes);
    if (!bytes || *bytes < kLeastBytes) {
      return Complained(fmt::format("--keep-bytes '{}' is not a size from 1M on; write 512M or 2G",
                                    options->keep_bytes),
                        kWrongUsage);
    }
    options->limits.bytes = *bytes;
  }
  for (std::string_view rest = options->on; !rest.empty();) {
    const size_t end = rest.find(',');
    const std::string_view name = rest.substr(0, end);
    if (!TakeTrigger(name, options)) {
      return Complained(
          fmt::format("--on '{}' is not one of hang, slow-step=3x, oom, exit, signal", name),
          kWrongUsage);
    }
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return std::nullopt;
}

}  // namespace ranktap::collector
