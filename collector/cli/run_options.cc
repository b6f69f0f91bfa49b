#include "collector/cli/run_options.h"

#include <fmt/core.h>

#include <cstdlib>
#include <tuple>

#include "collector/cli/command.h"
#include "collector/cli/run_stacks.h"
#include "collector/file/run_info.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/launch/injection.h"
#include "collector/launch/wanted_capture.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "proto/modes.h"

namespace ranktap::collector {
namespace {

void AddOptions(Arguments* app, RunOptions* options) {
  app->Add("-o,--output", &options->output, "directory of the run (default ./ranktap-COMMAND-TIME)")
      .Says("DIR");
  app->Add("--level", &options->level,
           "dormant, ranges, kernels (default), full, or auto: full and samples of Python where no "
           "NVIDIA driver is here, else kernels")
      .Suggests({"dormant", "ranges", "kernels", "full", "auto"});
  AddStackOptions(app, &options->stacks, &options->stacks_sample, &options->sample);
  app->Add("--delay", &options->delay, "capture nothing for this long: 10, 1.5s, 200ms, 2m");
  app->Add("--duration", &options->duration, "capture for this long, then nothing");
  app->Add("--budget", &options->budget,
           "share of the time that hooks may take, as 2% or 0.5%; a rank that is past it for 3 s "
           "gives up one level, never below ranges");
  app->AddFlag("--dormant", &options->dormant,
               "capture nothing until `ranktap start`, which then means --level");
  app->AddFlag("--window-signals", &options->window_signals,
               "SIGUSR1 to ranktap begins a window on all ranks, SIGUSR2 ends it. By default both "
               "go to the command");
  app->Add("--schedule", &options->schedule,
           "steps to record operator by operator, level full: "
           "wait=1,warmup=1,active=1,repeat=1 (the default), skip-first=, skip-first-wait=");
  app->AddFlag("--flop-check", &options->flop_check,
               "level full: FlopCounterMode runs in one recorded step; see report flop-check");
  app->AddFlag("--tensors", "1", &options->tensors,
               "level full: record which tensors operators take and return (default: none); "
               "--tensors=full records every value of an operator, for export --format et")
      .OneOf({"1", "full"});
  app->AddFlag(
      "--no-cuda", &options->no_cuda,
      "record nothing of CUDA, as torch.profiler's activities=[CPU]; --level kernels leaves "
      "out operators too");
  app->Add("--metadata", &options->metadata,
           "KEY=VALUE for run.json, as torch.profiler's add_metadata; may be repeated")
      .Repeatable();
  app->Add("--log", &options->log, "file for the collector's own messages");
  AddMetricsOptions(app, &options->metrics);
  AddHangOptions(app, &options->hang);
  AddKeepOptions(app, &options->keep);
  app->AddFlag("--require", &options->require,
               "do not start the command where it could not be traced, or not into -o; exit 125");
  app->AddFlag("--print-env", &options->print_env,
               "print the variables the command would get, and end");
  app->AddFlag("--no-preload", &options->no_preload,
               "set only the injection variables of CUDA and NVTX, not LD_PRELOAD");
  app->AddFooter(EnvironmentHelp());
}

// Where the command begins: after "--", else at the first word that is not an option of ours.
size_t CommandStart(const Arguments& app, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") return i + 1;
    if (arguments[i].empty() || arguments[i][0] != '-') return i;
    if (app.TakesWord(arguments[i])) ++i;
  }
  return arguments.size();
}

// nullopt: all is well.
std::optional<int> CheckOptions(RunOptions* options) {
  const char* const inherited = ::getenv("RANKTAP_LEVEL");
  if (options->level.empty()) options->level = inherited != nullptr ? inherited : "kernels";
  options->asked_level = options->level;
  options->level = ResolvedLevel(options->level);
  const auto level = LevelNamed(options->level);
  if (!level || *level > v1::LEVEL_FULL) {
    return Complained(
        fmt::format("no level '{}'; it is dormant, ranges, kernels, full or auto", options->level),
        kWrongUsage);
  }
  options->wanted_level = *level;
  if (options->asked_level == "auto" && options->sample.empty()) options->sample = SampleOfAuto();
  if (!SamplePeriod(options->sample, false)) return kWrongUsage;
  if (!options->stacks.empty() && !proto::ParseStackPolicy(options->stacks)) {
    return Complained(
        fmt::format("no stack policy '{}'; it is auto, off, launch, sync or all", options->stacks),
        kWrongUsage);
  }
  for (const std::string& entry : options->metadata) {
    if (entry.find('=') != entry.npos && entry[0] != '=') continue;
    return Complained(fmt::format("--metadata {}: write it as KEY=VALUE", entry), kWrongUsage);
  }
  if (const auto status = CheckHangOptions(&options->hang)) return status;
  if (const auto status = CheckKeepOptions(&options->keep)) return status;
  if (const std::string why = WhyNoSchedule(options->schedule); !why.empty()) {
    return Complained(why, kWrongUsage);
  }
  if ((options->flop_check || !options->tensors.empty()) && *level != v1::LEVEL_FULL) {
    return Complained("--flop-check and --tensors need level full: add --level full", kWrongUsage);
  }
  for (const auto& [name, text, ns] :
       {std::tuple("--duration", &options->duration, &options->duration_ns),
        std::tuple("--delay", &options->delay, &options->delay_ns)}) {
    if (text->empty()) continue;
    const auto parsed = ParseDuration(*text);
    if (!parsed) {
      return Complained(
          fmt::format("{} '{}' is not a time; write 10, 1.5s, 200ms or 2m", name, *text),
          kWrongUsage);
    }
    *ns = *parsed;
  }
  if (!options->budget.empty()) {
    const auto budget = ParseBudget(options->budget);
    if (!budget) {
      return Complained(fmt::format("--budget '{}' is not a share of the time; write 2% or 0.5%",
                                    options->budget),
                        kWrongUsage);
    }
    options->budget_ppm = *budget;
  }
  if (options->dormant && options->delay_ns + options->duration_ns > 0) {
    return Complained(
        "--dormant waits for `ranktap start`; give --delay and --duration to that command",
        kWrongUsage);
  }
  if (options->command.empty() && !options->print_env) {
    return Complained("which command? ranktap run [options] -- COMMAND ...", kWrongUsage);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> ParseRun(std::vector<std::string> arguments, RunOptions* options) {
  Arguments app(
      "Runs a command and traces every process in it. The command keeps its stdin, stdout,\n"
      "stderr and signals; ranktap ends with its exit status.",
      "ranktap run");
  app.SetUsage("ranktap run [options] -- COMMAND [arguments]");
  AddOptions(&app, options);
  const size_t start = CommandStart(app, arguments);
  options->command.assign(arguments.begin() + static_cast<ptrdiff_t>(start), arguments.end());
  const bool has_separator = start > 0 && start <= arguments.size() && arguments[start - 1] == "--";
  arguments.resize(start - (has_separator ? 1 : 0));
  if (const auto status = app.Parse(std::move(arguments))) return status;
  return CheckOptions(options);
}

std::optional<v1::LevelChange> WindowOf(const RunOptions& options) {
  if (options.delay_ns == 0 && options.duration_ns == 0) return std::nullopt;
  const uint64_t begin = RealtimeNs() + options.delay_ns;
  v1::LevelChange change;
  change.set_level(options.wanted_level);
  change.set_reason(options.delay_ns > 0 ? "--delay" : "--duration");
  change.set_at_realtime_ns(begin);
  if (options.duration_ns > 0) {
    change.set_reason("--duration");
    change.set_until_realtime_ns(begin + options.duration_ns);
  }
  return change;
}

v1::Level FirstLevel(const RunOptions& options) {
  return options.delay_ns > 0 || options.dormant ? v1::LEVEL_DORMANT : options.wanted_level;
}

std::vector<std::pair<std::string, std::string>> SettingsOf(const RunOptions& options) {
  std::vector<std::pair<std::string, std::string>> settings;
  if (!options.stacks.empty()) settings.emplace_back("RANKTAP_STACKS", options.stacks);
  if (options.stacks_sample != 0) {
    settings.emplace_back("RANKTAP_STACKS_SAMPLE", std::to_string(options.stacks_sample));
  }
  if (options.budget_ppm != 0) {
    settings.emplace_back("RANKTAP_BUDGET_PPM", std::to_string(options.budget_ppm));
  }
  if (options.wanted_level >= v1::LEVEL_FULL) settings.emplace_back("RANKTAP_PYTHON", "1");
  AddSampleSettings(options.sample, options.wanted_level >= v1::LEVEL_FULL, &settings);
  if (!options.schedule.empty()) settings.emplace_back("RANKTAP_SCHEDULE", options.schedule);
  if (options.flop_check) settings.emplace_back("RANKTAP_FLOP_CHECK", "1");
  if (!options.tensors.empty()) settings.emplace_back("RANKTAP_TENSORS", options.tensors);
  if (options.no_cuda) settings.emplace_back("RANKTAP_CUDA", "0");
  return settings;
}

std::map<std::string, std::string> MetadataOf(const RunOptions& options) {
  std::map<std::string, std::string> metadata;
  for (const std::string& entry : options.metadata) {
    metadata[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  }
  return metadata;
}

}  // namespace ranktap::collector
