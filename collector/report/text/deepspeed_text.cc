// Labels, order and number formats are those of deepspeed/profiling/flops_profiler/profiler.py
// 0.19.
#include "collector/report/text/deepspeed_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr double kNsPerSecond = 1e9;

template <typename... Values>
std::string Formatted(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

// Python's f"{round(value, 2):g}".
std::string Rounded(double value) {
  return Formatted("%g", std::strtod(Formatted("%.2f", value).c_str(), nullptr));
}

// number_to_string: "1.23 G", "0 ".
std::string Number(double value) {
  struct Magnitude {
    double size;
    const char* unit;
  };
  constexpr Magnitude kMagnitudes[] = {{1e12, "T"}, {1e9, "G"},  {1e6, "M"}, {1e3, "K"},
                                       {1, ""},     {1e-3, "m"}, {1e-6, "u"}};
  if (value == 0) return "0 ";
  for (const Magnitude& magnitude : kMagnitudes) {
    if (value >= magnitude.size || &magnitude == std::end(kMagnitudes) - 1) {
      return fmt::format("{} {}", Rounded(value / magnitude.size), magnitude.unit);
    }
  }
  return "";
}

std::string Params(double value) {
  std::string text = Number(value);
  std::replace(text.begin(), text.end(), 'G', 'B');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}
// params_to_string and flops_to_string before 0.10: "109.48 k", "336.23 M", "0.0 FLOPS".
std::string Params(double value, DeepSpeedStyle style) {
  if (style != DeepSpeedStyle::kOld || value < 1e3) return Params(value);
  return value < 1e6 ? Rounded(value / 1e3) + " k" : Rounded(value / 1e6) + " M";
}
std::string Macs(double value) { return Number(value) + "MACs"; }
std::string Flops(double value, DeepSpeedStyle style = DeepSpeedStyle::kCurrent) {
  if (style == DeepSpeedStyle::kOld && value == 0) return "0.0 FLOPS";
  return Number(value) + "FLOPS";
}
std::string Seconds(int64_t ns) { return Number(static_cast<double>(ns) / kNsPerSecond) + "s"; }

// The pull request's lines of modules have the Greek letter.
std::string Seconds(int64_t ns, DeepSpeedStyle style) {
  std::string text = Seconds(ns);
  if (style == DeepSpeedStyle::kMemory && text.ends_with(" us")) {
    text.replace(text.size() - 2, 1, "\u03bc");
  }
  return text;
}

double Ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }
double PerSecond(double count, int64_t ns) {
  return Ratio(count, static_cast<double>(ns) / kNsPerSecond);
}

int64_t Parameters(const ModuleProfile& module) { return Sum(module.parameters).elements; }

std::string Line(const std::string& label, const std::string& value) {
  return Formatted("%-70s  ", label.c_str()) + Formatted("%-8s\n", value.c_str());
}

// DeepSpeed's own formula takes the world for the data parallel size, one micro-batch for a step's
// and leaves out what is between the phases.
std::string SampleCount(const ModelProfile& profile, int64_t iteration_ns) {
  if (!profile.throughput) return "";
  const Throughput& of = *profile.throughput;
  const std::optional<double> right = of.SamplesPerSecond();
  std::string text =
      Line("samples/second: ",
           right ? Formatted("%.2f", *right)
                 : fmt::format("unknown ({})", of.batch == 0 ? of.batch_known : of.parallel.known));
  if (of.batch == 0) return text;
  const auto samples = static_cast<double>(of.batch) * static_cast<double>(of.parallel.world);
  return text + Line("samples/second by DeepSpeed's formula (batch * world / iter latency): ",
                     Formatted("%.2f", PerSecond(samples, iteration_ns)));
}

std::string Latencies(const ModelProfile& profile, const DeepSpeedOptions& options) {
  const ModuleProfile& root = profile.modules.front();
  const double flops = static_cast<double>(root.flops), factor = 2 + options.recompute_fwd_factor;
  const int64_t forward = root.forward_ns, backward = profile.backward_ns;
  std::string text = Line("fwd latency: ", Seconds(forward)) +
                     Line("fwd FLOPS per GPU = fwd flops per GPU / fwd latency: ",
                          Flops(PerSecond(flops, forward)));
  if (backward == 0) return text;
  const int64_t iteration = forward + backward + profile.optimizer_ns;
  text += Line("bwd latency: ", Seconds(backward));
  text += Line(Formatted("bwd FLOPS per GPU = %g * fwd flops per GPU / bwd latency: ", factor),
               Flops(PerSecond(factor * flops, backward)));
  text += Line(
      Formatted("fwd+bwd FLOPS per GPU = %g * fwd flops per GPU / (fwd+bwd latency): ", factor + 1),
      Flops(PerSecond((factor + 1) * flops, forward + backward)));
  text += Line("step latency: ", Seconds(profile.optimizer_ns));
  text += Line("iter latency: ", Seconds(iteration));
  text += Line(Formatted("FLOPS per GPU = %g * fwd flops per GPU / iter latency: ", factor + 1),
               Flops(PerSecond((factor + 1) * flops, iteration)));
  return text + SampleCount(profile, iteration);
}

// What DeepSpeed does not measure; in FlopCounterMode's rule, forward included, to be comparable.
std::string Measured(const ModelProfile& profile) {
  if (profile.forward_flops == 0) return "";
  const auto forward = static_cast<double>(profile.forward_flops);
  const auto backward = static_cast<double>(profile.backward_flops);
  const auto again = static_cast<double>(profile.recompute_flops);
  const int64_t both = profile.modules.front().forward_ns + profile.backward_ns;
  std::string text = Line("fwd flops per GPU (measured, matrix products): ", Number(forward)) +
                     Line("bwd flops per GPU (measured): ", Number(backward)) +
                     Line("recomputed flops per GPU (measured): ", Number(again)) +
                     Line("bwd flops / fwd flops (measured): ", Rounded(Ratio(backward, forward)));
  if (profile.backward_ns == 0) return text;
  text += Line("fwd+bwd FLOPS per GPU (measured): ", Flops(PerSecond(forward + backward, both)));
  return text;
}

// Counts whole steps, from one optimizer to the next.
std::string Utilisation(const ModelProfile& profile) {
  if (!profile.throughput || profile.throughput->forward_flops == 0) return "";
  const Throughput& of = *profile.throughput;
  std::string text = Line("time of a step (measured): ", Seconds(of.step_ns)) +
                     Line("micro-batches of a step (measured): ", std::to_string(of.micro_batches));
  const std::optional<double> mfu = of.Mfu(), hfu = of.Hfu();
  if (!mfu) return text + Line("MFU, HFU: ", fmt::format("unknown ({})", of.peak_known));
  return text +
         Line(fmt::format("peak FLOPS per GPU ({}): ", of.peak_known), Flops(of.peak_flops)) +
         Line("MFU = (fwd + bwd) flops / time of a step / peak: ", Rounded(100 * *mfu) + " %") +
         Line("HFU = with recomputed flops: ", Rounded(100 * *hfu) + " %");
}

// The lines that DeepSpeed prints with an engine.
std::string Sizes(const ModelProfile& profile) {
  if (!profile.throughput) return "";
  const Throughput& of = *profile.throughput;
  const bool known = of.parallel.data > 0;
  const std::string why = " (" + of.parallel.known + ")";
  return Line("world size: ", std::to_string(of.parallel.world)) +
         Line("data parallel size: ", known ? std::to_string(of.parallel.data) : "unknown" + why) +
         Line("model parallel size: ",
              std::to_string(of.parallel.model()) + (known ? "" : " (assumed)")) +
         Line("batch size per GPU: ", of.batch > 0 ? std::to_string(of.batch)
                                                   : fmt::format("unknown ({})", of.batch_known));
}

// `ranks`: those that hold one copy of the model's dense part.
std::string ParametersOf(const ModelProfile& profile, double ranks, DeepSpeedStyle style) {
  const ModuleProfile& root = profile.modules.front();
  const auto all = static_cast<double>(Parameters(root));
  if (root.expert_parameters_of_model == 0) {
    const bool is_old = style == DeepSpeedStyle::kOld;
    return Line(is_old ? "params per gpu: " : "params per GPU: ", Params(all, style)) +
           Line("params of model = params per GPU * mp_size: ", Params(all * ranks, style));
  }
  const bool split = std::any_of(profile.modules.begin(), profile.modules.end(),
                                 [](const ModuleProfile& m) { return m.expert_tensors_split; }) &&
                     ranks > 1;
  const double dense = (all - static_cast<double>(root.expert_parameters)) * ranks;
  const double experts = static_cast<double>(root.expert_parameters_of_model) * (split ? ranks : 1);
  // As "{:<8}".format(False) does.
  return Line("expert tensor parallelism enabled: ", split ? "1" : "0") +
         Line("params per GPU: ", Params(all)) +
         Line("params of model: ", Params(dense + experts)) +
         Line("   non-expert params of model: ", Params(dense)) +
         Line("   expert params of model: ", Params(experts));
}

std::string Summary(const ModelProfile& profile, const DeepSpeedOptions& options) {
  const ModuleProfile& root = profile.modules.front();
  std::string text = fmt::format(
      "\n-------------------------- DeepSpeed Flops Profiler --------------------------\n"
      "Profile Summary at step {}:\n"
      "Notations:\n"
      "data parallel size (dp_size), model parallel size(mp_size),\n"
      "number of parameters (params), number of multiply-accumulate operations(MACs),\n"
      "number of floating-point operations (flops), floating-point operations per second (FLOPS),\n"
      "fwd latency (forward propagation latency), bwd latency (backward propagation latency),\n"
      "step (weights update latency), iter latency (sum of fwd, bwd and step latency)\n\n",
      profile.step);
  const auto ranks = static_cast<double>(profile.throughput ? profile.throughput->parallel.model()
                                                            : 1);  // a model's copy has
  text += Sizes(profile);
  text += ParametersOf(profile, ranks, options.style);
  text += Line("fwd MACs per GPU: ", Macs(static_cast<double>(root.macs)));
  text += Line("fwd flops per GPU: ", Number(static_cast<double>(root.flops)));
  text += Line("fwd flops of model = fwd flops per GPU * mp_size: ",
               Number(static_cast<double>(root.flops) * ranks));
  return text + Latencies(profile, options) + Measured(profile) + Utilisation(profile);
}

// "475.1 M bfp16 + 2 K fp32"; `bytes`: of the memory instead of the elements. Nothing reads "0
// bfp16", by the types that `all` has.
std::string ByType(const ByDtype& amounts, const ByDtype& all, bool bytes) {
  std::string text;
  for (const auto& [dtype, ignored] : amounts.empty() ? all : amounts) {
    const auto found = amounts.find(dtype);
    const Amount amount = found == amounts.end() ? Amount{} : found->second;
    std::string name = dtype;
    if (name.starts_with("float")) name = "fp" + name.substr(5);
    if (name == "bfloat16") name = "bfp16";
    text += text.empty() ? "" : " + ";
    text += bytes ? Number(static_cast<double>(amount.bytes)) + "B"
                  : Params(static_cast<double>(amount.elements));
    text += " " + name;
  }
  return text.empty() ? "0" : text;
}

// ", 950.2 MB = 950.2 MB fp32 = 100% Gradients"; empty: there are none.
std::string Held(const ByDtype& amounts, const ByDtype& all, const char* of) {
  const auto bytes = static_cast<double>(Sum(amounts).bytes);
  if (bytes == 0) return "";
  return fmt::format(", {}B = {} = {}% {}", Number(bytes), ByType(amounts, all, true),
                     Rounded(100 * Ratio(bytes, static_cast<double>(Sum(all).bytes))), of);
}

// flops_repr: what comes between the parentheses of a module, before its own extra_repr().
std::string ModuleItems(const ModuleProfile& module, const ModuleProfile& root,
                        DeepSpeedStyle style) {
  struct Item {
    std::string amount;
    double percent;
    const char* of;
  };
  const auto percent = [](auto part, auto whole) {
    return 100 * Ratio(static_cast<double>(part), static_cast<double>(whole));
  };
  const Amount held = Sum(module.parameters), all = Sum(root.parameters);
  std::vector<Item> items = {
      {Params(static_cast<double>(held.elements), style), percent(held.elements, all.elements),
       "Params"},
      {Macs(static_cast<double>(module.macs)), percent(module.macs, root.macs), "MACs"},
      {Seconds(module.forward_ns, style), percent(module.forward_ns, root.forward_ns), "latency"}};
  if (style == DeepSpeedStyle::kMemory && held.elements == 0) {
    items.insert(items.begin() + 2, {"0 B", 0, "Memory"});
  } else if (style == DeepSpeedStyle::kMemory) {
    items[0].amount += " = " + ByType(module.parameters, root.parameters, false);
    items.insert(items.begin() + 2,
                 {fmt::format("{}B = {}", Number(static_cast<double>(held.bytes)),
                              ByType(module.parameters, root.parameters, true)),
                  percent(held.bytes, all.bytes), "Memory"});
  }
  std::string text;
  for (const Item& item : items) {
    text += item.amount;
    text += style == DeepSpeedStyle::kOld ? ", " + Formatted("%.2f", item.percent)
                                          : " = " + Rounded(item.percent);
    text += fmt::format("% {}, ", item.of);
  }
  text += Flops(PerSecond(static_cast<double>(module.flops), module.forward_ns), style);
  if (style == DeepSpeedStyle::kMemory) {
    if (module.expert_parameters != 0) {
      text += fmt::format(", {} = {}% Expert Params",
                          Params(static_cast<double>(module.expert_parameters)),
                          Rounded(percent(module.expert_parameters, root.expert_parameters)));
    }
    text += Held(module.gradients, root.gradients, "Gradients");
    text += Held(module.states, root.states, "States");
  }
  if (!module.extra.empty()) text += ", " + module.extra;
  return text;
}

// torch.nn.Module.__repr__.
void AppendModule(const ModelProfile& profile, uint32_t index, size_t indent, DeepSpeedStyle style,
                  std::string* text) {
  const ModuleProfile& module = profile.modules[index];
  const std::string items = ModuleItems(module, profile.modules.front(), style);
  *text += module.type + "(";
  if (module.children.empty()) {
    *text += items + ")";
    return;
  }
  const std::string inside = "\n" + std::string(indent + 2, ' ');
  // The ModuleList of PyTorch 2.1 and later prints its children only; the older formats are of
  // before.
  if (module.type != "ModuleList" || style != DeepSpeedStyle::kCurrent) *text += inside + items;
  for (const uint32_t child : module.children) {
    *text += inside + "(" + profile.modules[child].attribute + "): ";
    AppendModule(profile, child, indent + 2, style, text);
  }
  *text += "\n" + std::string(indent, ' ') + ")";
}

struct ClassSums {
  std::string type;
  int64_t macs = 0, parameters = 0, forward_ns = 0;
};

void AddToDepths(const ModelProfile& profile, uint32_t index, size_t depth,
                 std::vector<std::vector<ClassSums>>* depths) {
  const ModuleProfile& module = profile.modules[index];
  if (depths->size() <= depth) depths->emplace_back();
  std::vector<ClassSums>& classes = (*depths)[depth];
  auto sums = std::find_if(classes.begin(), classes.end(),
                           [&](const ClassSums& known) { return known.type == module.type; });
  if (sums == classes.end()) sums = classes.insert(classes.end(), {.type = module.type});
  sums->macs += module.macs;
  sums->parameters += Parameters(module);
  sums->forward_ns += module.forward_ns;
  for (const uint32_t child : module.children) AddToDepths(profile, child, depth + 1, depths);
}

// {'Linear': '1.2 M', 'LayerNorm': '3 K'}: the largest `count`.
template <typename Text>
std::string Top(std::vector<ClassSums> classes, int count, int64_t ClassSums::*value, Text text) {
  SortRows(&classes,
           [value](const ClassSums& a, const ClassSums& b) { return a.*value > b.*value; });
  std::string list;
  for (size_t i = 0; i < classes.size() && i < static_cast<size_t>(std::max(count, 0)); ++i) {
    list += (list.empty() ? "'" : ", '") + classes[i].type + "': '" + text(classes[i].*value) + "'";
  }
  return "{" + list + "}\n";
}

std::string Aggregated(const ModelProfile& profile, const DeepSpeedOptions& options) {
  std::vector<std::vector<ClassSums>> depths;
  AddToDepths(profile, 0, 0, &depths);
  size_t shown =
      options.module_depth < 0 ? depths.size() - 1 : static_cast<size_t>(options.module_depth);
  shown = std::min(shown, depths.size());
  const int count = options.top_modules;
  std::string text = fmt::format(
      "\n----------------------------- Aggregated Profile per GPU -----------------------------\n"
      "Top {} modules in terms of params, MACs or fwd latency at different model depths:\n",
      count);
  for (size_t depth = 0; depth < shown; ++depth) {
    const std::vector<ClassSums>& classes = depths[depth];
    text += fmt::format("depth {}:\n", depth);
    text += "    params      - " + Top(classes, count, &ClassSums::parameters, [&](int64_t value) {
              return Params(static_cast<double>(value), options.style);
            });
    text += "    MACs        - " + Top(classes, count, &ClassSums::macs, [](int64_t value) {
              return Macs(static_cast<double>(value));
            });
    text += "    fwd latency - " + Top(classes, count, &ClassSums::forward_ns,
                                       [&](int64_t ns) { return Seconds(ns, options.style); });
  }
  return text;
}

std::string Detailed(const ModelProfile& profile, DeepSpeedStyle style) {
  std::string text = fmt::format(
      "\n------------------------------ Detailed Profile per GPU ------------------------------\n"
      "Each module profile is listed after its name in the following order: \nparams, percentage "
      "of total params, MACs, percentage of total MACs, fwd latency, percentage of total fwd "
      "latency, fwd FLOPS\n"
      "\nNote: 1. A module can have torch.nn.module or torch.nn.functional to compute logits (e.g. "
      "CrossEntropyLoss). They are not counted as submodules, thus not to be printed out. However "
      "they make up the difference between a parent's MACs (or latency) and the sum of its "
      "submodules'.\n2. Number of floating-point operations is a theoretical estimation, thus "
      "FLOPS computed using that could be larger than the maximum system throughput.\n3. The fwd "
      "latency is of {}, the mean of {}; nothing was synchronised for it.\n\n",
      profile.on_device ? "the work launched on the device" : "the host",
      Counted(profile.steps_timed, "step"));
  AppendModule(profile, 0, 0, style, &text);
  return text + "\n";
}

}  // namespace

std::string FormatDeepSpeed(const ModelProfile& profile, const DeepSpeedOptions& options) {
  std::string text = Summary(profile, options) + Aggregated(profile, options);
  if (options.detailed) text += Detailed(profile, options.style);
  text += "------------------------------------------------------------------------------\n";
  std::string printable;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    printable += Printable(std::string_view(text).substr(from, end - from)) + "\n";
    from = end + 1;
  }
  return printable;
}

}  // namespace ranktap::collector
