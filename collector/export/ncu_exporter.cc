// A shell script that measures a run's longest kernels with Nsight Compute: hardware counters need
// rights and run kernels one at a time, which a job notices, so ranktap reads none itself.
//
// Options of ncu as its manual has them (Nsight Compute CLI 2020.1 and later): --kernel-name-base
// function, --kernel-name regex:, --launch-skip and --launch-count, which count what the filter
// keeps.
#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/output_file.h"
#include "collector/facts/communication_kernels.h"
#include "collector/facts/roofline/measured_work.h"
#include "collector/facts/steps.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// The script names kernels until they have this share of the kernels' time, and no more than this.
constexpr double kWorthIt = 0.9;
constexpr size_t kMostNames = 10;

struct Named {
  std::string name;
  int64_t total_ns = 0;
  std::vector<int64_t> starts;  // of its launches, or where none is known of itself
};

struct Worth {
  std::vector<Named> kernels;
  int64_t share_percent = 0;
  int64_t left_out = 0;  // communicates: run alone it would wait for ever
};

// The function's name, as ncu's name base "function" has it.
std::string FunctionName(std::string_view readable) {
  std::string name = BaseKernelName(readable);
  name.erase(std::remove(name.begin(), name.end(), '\''), name.end());
  return name;
}

Worth FindWorth(const Trace& trace) {
  Worth worth;
  std::map<uint32_t, std::string> names;
  std::map<std::string, Named> by_name;
  int64_t total = 0;
  const Kernels& kernels = trace.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels.start[i] == kUntimed) continue;
    const auto [name, is_new] = names.try_emplace(kernels.name[i]);
    if (is_new) {
      const std::string readable = ReadableKernelName(trace.dictionary.String(kernels.name[i]));
      if (!IsCommunicationKernel(readable)) name->second = FunctionName(readable);
    }
    if (name->second.empty()) {
      ++worth.left_out;
      continue;
    }
    Named& named = by_name[name->second];
    named.name = name->second;
    named.total_ns += kernels.end[i] - kernels.start[i];
    total += kernels.end[i] - kernels.start[i];
    const uint32_t launch = kernels.launch[i];
    named.starts.push_back(launch < trace.api_calls.size() ? trace.api_calls.start[launch]
                                                           : kernels.start[i]);
  }
  for (auto& [name, named] : by_name) worth.kernels.push_back(std::move(named));
  SortRows(&worth.kernels, [](const Named& a, const Named& b) { return a.total_ns > b.total_ns; });
  int64_t kept = 0;
  size_t count = 0;
  while (count < worth.kernels.size() && count < kMostNames &&
         static_cast<double>(kept) < kWorthIt * static_cast<double>(total)) {
    kept += worth.kernels[count++].total_ns;
  }
  worth.kernels.resize(count);
  worth.share_percent = total == 0 ? 0 : kept * 100 / total;
  return worth;
}

std::string ForRegex(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

// For a POSIX shell.
std::string Word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') text += "'\\'";
    text += c;
  }
  return text + "'";
}

void WriteCommand(const Trace& trace, const Worth& worth, OutputFile* file) {
  const StepList& steps = DetectSteps(trace);
  const auto middle = std::find_if(steps.list.begin(), steps.list.end(),
                                   [](const Step& step) { return !step.warm_up; });
  int64_t skip = 0, count = 0;
  std::string names;
  file->Write(fmt::format("# {}: {} of its kernels' names have {} % of the kernels' time",
                          trace.info.rank ? fmt::format("rank {}", *trace.info.rank) : "a process",
                          worth.kernels.size(), worth.share_percent));
  file->Write(
      worth.left_out == 0
          ? "\n"
          : fmt::format("; {} launches that communicate are left out: alone they wait for ever\n",
                        worth.left_out));
  for (const Named& kernel : worth.kernels) {
    names += (names.empty() ? "" : "|") + ForRegex(kernel.name);
    for (const int64_t start : kernel.starts) {
      if (middle == steps.list.end()) {
        ++count;
      } else if (start < middle->start) {
        ++skip;
      } else if (start < middle->end) {
        ++count;
      }
    }
  }
  file->Write(middle == steps.list.end()
                  ? std::string("# All launches: the run has no steps.\n")
                  : fmt::format("# The launches of {} {}, the first after the warm-up, if the "
                                "program runs as it did then.\n",
                                steps.noun(), middle->number));
  std::string metrics;
  for (const std::string_view metric : MetricsOfWork()) {
    metrics += (metrics.empty() ? "" : ",") + std::string(metric);
  }
  std::string command;
  for (const std::string& word : trace.hello.process().command_line()) command += " " + Word(word);
  if (command.empty()) command = " PROGRAM";
  file->Write(fmt::format(
      "ncu --target-processes all --kernel-name-base function \\\n"
      "  --kernel-name {} \\\n  --launch-skip {} --launch-count {} \\\n"
      "  --metrics {} \\\n  --csv --page raw --log-file {} \\\n {}\n",
      Word("regex:^(" + names + ")$"), skip, count, metrics,
      trace.info.rank ? fmt::format("ncu-rank{}.csv", *trace.info.rank) : "ncu.csv", command));
}

}  // namespace

std::optional<Failure> WriteNcu(const Run& run, std::span<const Trace* const> traces,
                                const ExportOptions&, const std::string& path) {
  std::vector<Worth> worths;
  for (const Trace* const trace : traces) worths.push_back(FindWorth(*trace));
  if (std::ranges::all_of(worths, [](const Worth& worth) { return worth.kernels.empty(); })) {
    return Failure{fmt::format("{}: no kernel with times in it that ncu could measure", run.path)};
  }
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  file->Write(
      "#!/bin/sh\n"
      "# Measures with Nsight Compute what ranktap saw to take most time. One of these commands "
      "at a\n# time; a rank's stands where its program is started, below the launcher. Counters "
      "need rights:\n# NVIDIA's ERR_NVGPUCTRPERM page.\n");
  for (size_t i = 0; i < traces.size(); ++i) {
    if (!worths[i].kernels.empty()) WriteCommand(*traces[i], worths[i], &*file);
  }
  return file->Close();
}

}  // namespace ranktap::collector
