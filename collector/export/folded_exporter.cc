#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/export/sampled_stacks.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// ';' separates frames, a line's last blank its weight.
std::string Clean(std::string name) {
  std::replace(name.begin(), name.end(), ';', ':');
  std::replace(name.begin(), name.end(), '\n', ' ');
  return name;
}

std::string FoldedStack(const Trace& trace, uint32_t stack) {
  std::string text;
  const std::vector<uint64_t>& frames = trace.dictionary.Stack(stack).frames;
  if (frames.empty()) return "(no stack)";
  if (trace.dictionary.Stack(stack).truncated) text = "(truncated)";
  for (size_t i = frames.size(); i-- > 0;) {
    const ResolvedAddress* const resolved = trace.symbols.Find(frames[i]);
    if (resolved == nullptr) continue;
    for (size_t k = resolved->frames.size(); k-- > 0;) {
      const SourceFrame& frame = resolved->frames[k];
      if (!text.empty()) text += ';';
      if (frame.function.starts_with('+')) text += resolved->module;
      text += Clean(frame.function);
    }
  }
  return text;
}

using Weights = std::map<std::pair<uint32_t, std::string>, int64_t>;  // by stack and leaf

template <typename NameOf>
void AddWork(const Trace& trace, const DeviceWork& work, const ExportOptions& options,
             std::vector<bool>* launched, Weights* weights, NameOf&& name_of) {
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.start[i] == kUntimed) continue;
    const uint32_t call = work.launch[i];
    const bool known = call < trace.api_calls.size();
    if (known) (*launched)[call] = true;
    if (!options.Keeps(work.start[i], work.end[i])) continue;
    const uint32_t stack = known ? trace.api_calls.stack.At(call) : 0;
    (*weights)[{stack, "[" + name_of(i) + "]"}] += work.end[i] - work.start[i];
  }
}

// Python's frames, the innermost first in a trace, as "main;step".
std::string FoldedPython(std::string_view stack) {
  std::string text;
  while (!stack.empty()) {
    const size_t at = stack.rfind(';');
    const size_t begin = at == std::string_view::npos ? 0 : at + 1;
    if (!text.empty()) text += ';';
    text += Clean(std::string(stack.substr(begin)));
    stack = stack.substr(0, at == std::string_view::npos ? 0 : at);
  }
  return text;
}

// Operators that have a Python stack: below it those around them, and the time that is in none of
// those inside.
void WriteOperators(const Trace& trace, const ExportOptions& options, const std::string& root,
                    OutputFile* file) {
  const Operators& ops = trace.operators;
  std::vector<int64_t> own(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    own[i] += ops.end[i] - ops.start[i];
    if (i < ops.parent.size() && ops.parent[i] != kNone) {
      own[ops.parent[i]] -= ops.end[i] - ops.start[i];
    }
  }
  std::map<std::string, int64_t> weights;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.stack.At(i) == 0 || !options.Keeps(ops.start[i], ops.end[i])) continue;
    std::string names;
    for (size_t at = i; at != kNone; at = at < ops.parent.size() ? ops.parent[at] : kNone) {
      names =
          fmt::format(";{}{}", Clean(std::string(trace.dictionary.String(ops.name[at]))), names);
    }
    weights[FoldedPython(trace.dictionary.String(ops.stack.At(i))) + names] +=
        std::max<int64_t>(own[i], 0);
  }
  for (const auto& [text, ns] : weights) file->Write(fmt::format("{}{} {}\n", root, text, ns));
}

void WriteTrace(const Trace& trace, const ExportOptions& options, OutputFile* file) {
  Weights weights;
  std::vector<bool> launched(trace.api_calls.size(), false);
  std::map<uint32_t, std::string> kernels;  // by name id
  AddWork(trace, trace.kernels, options, &launched, &weights, [&](size_t i) {
    const uint32_t id = trace.kernels.name[i];
    std::string& name = kernels[id];
    if (name.empty()) name = Clean(ReadableKernelName(trace.dictionary.String(id)));
    return name;
  });
  const auto named = [](const char* name) { return [name](size_t) { return std::string(name); }; };
  AddWork(trace, trace.copies, options, &launched, &weights, named("copy"));
  AddWork(trace, trace.memsets, options, &launched, &weights, named("memset"));
  AddWork(trace, trace.graph_launches, options, &launched, &weights, named("graph"));
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    if (launched[i] || !options.Keeps(trace.api_calls.start[i], trace.api_calls.end[i])) continue;
    const std::string& api = trace.dictionary.Api(trace.api_calls.api[i]).name;
    weights[{trace.api_calls.stack.At(i), api}] +=
        trace.api_calls.end[i] - trace.api_calls.start[i];
  }
  const std::string root =
      trace.info.rank ? fmt::format("rank {};", *trace.info.rank) : std::string();
  std::map<uint32_t, std::string> stacks;
  for (const auto& [key, ns] : weights) {
    std::string& stack = stacks[key.first];
    if (stack.empty()) stack = FoldedStack(trace, key.first);
    file->Write(fmt::format("{}{};{} {}\n", root, stack, key.second, ns));
  }
  WriteOperators(trace, options, root, file);
}

// A tower of its own: this time is in that of operators too.
void WriteSamples(const Trace& trace, const ExportOptions& options, OutputFile* file) {
  const std::string rank = trace.info.rank ? fmt::format("rank {}: ", *trace.info.rank) : "";
  WeightedStacks stacks;
  AddSampledStacks(trace, options, stacks.IndexOf({rank + "Python threads", ""}), &stacks);
  for (const auto& [key, weights] : stacks.stacks()) {
    std::string text;
    for (const uint32_t index : key.frames) {
      const WeightedFrame& frame = stacks.frames()[index];
      if (!text.empty()) text += ';';
      text += Clean(frame.function);
      if (frame.line != 0)
        text += Clean(fmt::format(" ({}:{})", ShortFile(frame.file), frame.line));
    }
    file->Write(fmt::format("{} {}\n", text, weights[static_cast<size_t>(StackWeight::kSampled)]));
  }
}

}  // namespace

std::optional<Failure> WriteFolded(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  for (const Trace* const trace : traces) {
    const ExportOptions shifted = options.Shifted(RealtimeOffset(run, *trace));
    WriteTrace(*trace, shifted, &*file);
    WriteSamples(*trace, shifted, &*file);
  }
  if (auto failure = file->Close()) return failure;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) > 0) {
    return std::nullopt;
  }
  std::filesystem::remove(path, error);
  return Failure{
      fmt::format("{}: no stacks in it: record with ranktap run --sample 10ms or --stacks all, or "
                  "take --format speedscope, "
                  "which stacks operators",
                  traces.empty() ? run.path : traces[0]->path)};
}

}  // namespace ranktap::collector
