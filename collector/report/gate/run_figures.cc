#include "collector/report/gate/run_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "collector/file/json.h"
#include "collector/report/reports.h"
#include "collector/report/steps/run_diff.h"
#include "collector/report/steps/throughput.h"

namespace ranktap::collector {
namespace {

// As `run` records it, and OpenTelemetry names it (launch/new_run.cc).
constexpr std::string_view kVariablePrefix = "process.environment_variable.";

std::string JoinedTexts(const std::set<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

void AddSettings(const Run& run, RunFigures* figures) {
  std::multiset<std::string> devices;
  std::set<std::string> levels;
  for (const Trace& trace : run.traces) {
    for (const v1::Device& device : trace.hello.devices()) devices.insert(device.name());
    levels.insert(trace.info.level);
    for (const v1::Library& library : trace.hello.libraries()) {
      figures->settings["version of " + library.name()] = library.version();
    }
  }
  std::set<std::string> counted;
  for (const std::string& name : devices) {
    counted.insert(fmt::format("{} x {}", devices.count(name), name));
  }
  figures->must_agree["ranks"] = fmt::format("{}", run.traces.size());
  figures->must_agree["devices"] = counted.empty() ? "none" : JoinedTexts(counted);
  figures->must_agree["levels"] = JoinedTexts(levels);
  std::string command;
  for (const std::string& word : run.info.command) command += (command.empty() ? "" : " ") + word;
  figures->settings["command"] = command;
  figures->settings["host"] = run.info.host;
  figures->settings["version of ranktap"] = run.info.collector_version;
  for (const auto& [name, value] : run.info.metadata) {
    const bool is_variable = name.starts_with(kVariablePrefix);
    figures->settings[is_variable ? name.substr(kVariablePrefix.size()) : name] = value;
  }
}

// The first rank that tells it stands for all: they do the same.
void AddWorkload(const Run& run, RunFigures* figures) {
  for (const Trace& trace : run.traces) {
    const std::optional<Throughput> work = MeasureThroughput(run, trace, {});
    if (!work) continue;
    if (work->batch > 0) figures->settings["batch"] = fmt::format("{}", work->batch);
    if (work->micro_batches > 1) {
      figures->settings["batches a step"] = fmt::format("{}", work->micro_batches);
    }
    if (!work->types.empty()) figures->settings["dtype"] = work->types;
    if (work->model_flops() > 0) {
      figures->flops_per_step = static_cast<double>(work->model_flops());
    }
    return;
  }
}

std::optional<double> PeakOf(const Run& run) {
  const Table table = TabulateKeyFigures(run);
  for (size_t c = 0; c < table.columns.size() && !table.rows.empty(); ++c) {
    if (table.columns[c].name != "peak_bytes") continue;
    if (const auto* const bytes = std::get_if<int64_t>(&table.rows[0][c])) {
      return static_cast<double>(*bytes);
    }
  }
  return std::nullopt;
}

Json WriteFigures(const RunFigures& run) {
  Json figures = Json::array();
  for (const auto& [key, figure] : run.by_key) {
    figures.push_back({{"kind", NameOf(key.first)},
                       {"name", key.second},
                       {"ns_per_step", figure.ns},
                       {"calls_per_step", figure.calls}});
  }
  return {{"path", run.path},
          {"id", run.id},
          {"undecided", run.undecided},
          {"steps", run.steps},
          {"must_agree", run.must_agree},
          {"settings", run.settings},
          {"peak_bytes", run.peak_bytes},
          {"flops_per_step", run.flops_per_step},
          {"figures", std::move(figures)}};
}

// Members that are not there keep what they are; throws for members of another type.
RunFigures ReadFigures(const Json& json) {
  RunFigures run;
  run.path = json.value("path", "");
  run.id = json.value("id", "");
  run.undecided = json.value("undecided", "");
  run.steps = json.value("steps", size_t{0});
  run.must_agree = json.value("must_agree", run.must_agree);
  run.settings = json.value("settings", run.settings);
  const auto number = [&json](const char* name) -> std::optional<double> {
    if (!json.contains(name) || !json[name].is_number()) return std::nullopt;
    return json[name].get<double>();
  };
  run.peak_bytes = number("peak_bytes");
  run.flops_per_step = number("flops_per_step");
  for (const Json& figure : json.value("figures", Json::array())) {
    const std::string kind = figure.value("kind", "");
    for (size_t k = 0; k < kSampleKinds; ++k) {
      if (kind != NameOf(static_cast<SampleKind>(k))) continue;
      run.by_key[{static_cast<SampleKind>(k), figure.value("name", "")}] = {
          .ns = figure.value("ns_per_step", 0.0), .calls = figure.value("calls_per_step", 0.0)};
    }
  }
  return run;
}

}  // namespace

RunFigures FiguresOf(const Run& run) {
  RunFigures figures{.path = run.path, .id = run.info.run, .undecided = WhyUndecided(run)};
  // Never told apart: a baseline does not know whether the other run's waiting can be.
  RunSamples samples = SampleRun(run, /*tells_waiting=*/false);
  RunSamples none;
  JoinNumberedRanges(&samples, &none);
  figures.steps = samples.has_steps ? samples.steps_of(SampleKind::kStep) : 0;
  for (const auto& [key, of_key] : samples.by_key) {
    const auto steps = static_cast<double>(std::max<size_t>(samples.steps_of(key.first), 1));
    figures.by_key[key] = {.ns = std::accumulate(of_key.ns.begin(), of_key.ns.end(), 0.0) / steps,
                           .calls = static_cast<double>(of_key.calls) / steps};
  }
  figures.peak_bytes = PeakOf(run);
  AddWorkload(run, &figures);
  AddSettings(run, &figures);
  return figures;
}

std::string WriteBaseline(const Baseline& baseline) {
  Json runs = Json::array();
  for (const RunFigures& run : baseline.runs) runs.push_back(WriteFigures(run));
  const Json all = {
      {"ranktap_baseline", kBaselineFormat}, {"name", baseline.name}, {"runs", std::move(runs)}};
  return WriteJson(all, 1) + "\n";
}

std::optional<Baseline> ParseBaseline(std::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_object() || !json.contains("ranktap_baseline") || !json.contains("runs")) {
    return std::nullopt;
  }
  try {
    if (json["ranktap_baseline"].get<int>() != kBaselineFormat) return std::nullopt;
    Baseline baseline{.name = json.value("name", ""), .runs = {}};
    for (const Json& run : json["runs"]) baseline.runs.push_back(ReadFigures(run));
    return baseline;
  } catch (const std::domain_error&) {
    return std::nullopt;
  }
}

}  // namespace ranktap::collector
