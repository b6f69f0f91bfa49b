// `ranktap profile-model MODULE:FACTORY --input-shape …`: what DeepSpeed's get_model_profile says
// of a model, without a program: a small one of ours makes it and runs forwards under `ranktap
// run`.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <filesystem>

#include "collector/cli/command.h"
#include "collector/file/json.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

// Arguments: the model, its keywords as JSON, the device, the type, how many forwards, shapes.
constexpr const char* kProgram = R"(
import sys
sys.path = [folder for folder in sys.path if folder]  # a json.py here is not ours to run
import importlib, importlib.util, json, os
# From elsewhere: the RUNPATH of nvidia-cusparselt's library, "$ORIGIN:", leads to a libcuda.so.1 here.
here = os.getcwd()
sys.path = [os.path.abspath(folder) for folder in sys.path]
os.chdir('/')
try:
    import torch
except ModuleNotFoundError as failure:
    sys.exit(f'ranktap: {sys.executable}: {failure}; name the interpreter that has torch with --python')
os.chdir(here)

def fail(_, failure, trace):
    import traceback
    theirs = [frame for frame in traceback.extract_tb(trace) if frame.filename != '<string>' and
              not frame.filename.startswith(('<frozen ', '<ranktap/'))]
    sys.stderr.write(''.join(traceback.format_list(theirs)) + f'ranktap: {where}: {type(failure).__name__}: {failure}\n')

where, keywords, device, dtype, forwards, *shapes = sys.argv[1:]
sys.excepthook = fail
module, _, factory = where.rpartition(':')
sys.path.append(here)
if module.endswith('.py'):
    spec = importlib.util.spec_from_file_location('model', module)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
else:
    source = importlib.import_module(module)
element = getattr(torch, dtype, None)
if not isinstance(element, torch.dtype):
    sys.exit(f'ranktap: --dtype {dtype}: torch has no such type; write it as float32 or int64')
made = getattr(source, factory)(**json.loads(keywords))
model, inputs = made if isinstance(made, tuple) else (made, None)
device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
model = model.to(device).eval()
if shapes:
    inputs = [torch.ones([int(size) for size in shape.split(',')], dtype=element, device=device)
              for shape in shapes]
if inputs is None:
    sys.exit('ranktap: give --input-shape, or let the factory return (model, inputs)')
inputs = inputs if isinstance(inputs, (list, tuple, dict)) else [inputs]
with torch.no_grad():
    for _ in range(int(forwards)):
        model(**inputs) if isinstance(inputs, dict) else model(*inputs)
if device.startswith('cuda'):
    torch.cuda.synchronize()
)";

// That of the active environment: its folder may not be on PATH (conda run, a shell that kept its
// own).
std::string ActivePython() {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const folder = ::getenv(variable);
    if (folder == nullptr || *folder == 0) continue;
    std::string python = std::string(folder) + "/bin/python3";
    if (std::filesystem::exists(python)) return python;
  }
  return "python3";
}

struct WantedModel {
  std::string model, keywords = "{}", device, dtype = "float32", python, output;
  std::string format = "deepspeed";
  std::vector<std::string> shapes, ignored_modules;
  int64_t warm_up = 1, forwards = 5, module_depth = -1, top_modules = 1;
};

std::optional<int> Parse(const std::vector<std::string>& arguments, WantedModel* wanted) {
  Arguments app(
      "Makes a model, runs it forward, and prints what DeepSpeed's get_model_profile prints.",
      "ranktap profile-model");
  app.SetUsage("ranktap profile-model MODULE:FACTORY --input-shape 1,3,224,224 [options]");
  app.Add("MODULE:FACTORY", &wanted->model,
          "what makes the model: torchvision.models:alexnet, or net.py:Net; it may return "
          "(model, inputs)")
      .Required();
  app.Add("--input-shape", &wanted->shapes,
          "shape of one input, as 1,3,224,224; give it once for each input")
      .Repeatable();
  app.Add("--dtype", &wanted->dtype,
          "torch's name for the type of the inputs, which are filled with ones")
      .ShowsDefault();
  app.Add("--kwargs", &wanted->keywords, "keyword arguments of the factory, as JSON")
      .ShowsDefault();
  app.Add("--device", &wanted->device, "cpu, cuda, cuda:1 (default cuda where there is one)");
  app.Add("--warm-up", &wanted->warm_up, "forwards before the one whose operators are recorded")
      .From(0, 1'000'000)
      .ShowsDefault();
  app.Add("--forwards", &wanted->forwards,
          "forwards after the recorded one, which give the latencies")
      .From(0, 1'000'000)
      .ShowsDefault();
  app.Add("--format", &wanted->format, "format of the report modules")
      .OneOf({"deepspeed", "deepspeed-old", "deepspeed-memory", "text", "json", "csv", "html"})
      .ShowsDefault();
  app.Add("--ignore-modules", &wanted->ignored_modules,
          "--format deepspeed...: types of modules whose arithmetic counts for the module around "
          "them")
      .CommaSeparated();
  app.Add("--module-depth", &wanted->module_depth,
          "how many depths the aggregated profile shows; -1: all but the deepest")
      .ShowsDefault();
  app.Add("--top-modules", &wanted->top_modules, "classes of modules at each depth").ShowsDefault();
  app.Add("--python", &wanted->python,
          "the interpreter that has torch (default python3 of the active environment)");
  app.Add("-o,--output", &wanted->output, "directory in which to keep the run");
  return app.Parse(arguments);
}

// The sentence about what the program of ours could not read; nullopt: it can.
std::optional<std::string> WrongText(const WantedModel& wanted) {
  if (!wanted.keywords.starts_with('{') || !IsJson(wanted.keywords)) {
    return fmt::format("--kwargs '{}' is no JSON object; write it as {{\"classes\": 10}}",
                       wanted.keywords);
  }
  for (const std::string& shape : wanted.shapes) {
    if (!shape.empty() && shape.find_first_not_of("0123456789,") == std::string::npos &&
        shape.back() != ',' && shape.front() != ',' && shape.find(",,") == std::string::npos) {
      continue;
    }
    return fmt::format("--input-shape '{}' is no shape; write it as 1,3,224,224", shape);
  }
  return std::nullopt;
}

int Profile(const WantedModel& wanted, const std::string& run) {
  std::vector<std::string> words = {"--quiet",
                                    "--level",
                                    "full",
                                    "-o",
                                    run,
                                    "--schedule",
                                    fmt::format("wait={},active=1,repeat=1", wanted.warm_up),
                                    "--",
                                    wanted.python.empty() ? ActivePython() : wanted.python,
                                    "-c",
                                    kProgram,
                                    wanted.model,
                                    wanted.keywords,
                                    wanted.device,
                                    wanted.dtype,
                                    std::to_string(wanted.warm_up + 1 + wanted.forwards)};
  words.insert(words.end(), wanted.shapes.begin(), wanted.shapes.end());
  const bool wants_quiet = Style().quiet;
  if (const int status = RunCommand(words); status != kSuccess) return status;
  Style().quiet = wants_quiet;
  std::vector<std::string> report = {run,
                                     "modules",
                                     "--format",
                                     wanted.format,
                                     "--module-depth",
                                     std::to_string(wanted.module_depth),
                                     "--top-modules",
                                     std::to_string(wanted.top_modules)};
  if (!wanted.ignored_modules.empty()) {
    report.push_back("--ignore-modules");
    report.push_back(fmt::format("{}", fmt::join(wanted.ignored_modules, ",")));
  }
  return ReportCommand(report);
}

}  // namespace

int ProfileModelCommand(const std::vector<std::string>& arguments) {
  WantedModel wanted;
  if (const auto status = Parse(arguments, &wanted)) return *status;
  if (wanted.model.find(':') == std::string::npos) {
    return Complained(
        fmt::format("'{}' is not MODULE:FACTORY; write it as torchvision.models:alexnet or "
                    "net.py:Net",
                    wanted.model),
        kWrongUsage);
  }
  if (const auto problem = WrongText(wanted)) return Complained(*problem, kWrongUsage);
  if (!wanted.output.empty()) return Profile(wanted, wanted.output);
  std::string folder = (std::filesystem::temp_directory_path() / "ranktap-model-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return Complained(fmt::format("{}: could not create; name a directory with -o", folder),
                      kFailure);
  }
  const int status = Profile(wanted, folder + "/run");
  std::error_code ignored;  // a directory of ours is left behind
  std::filesystem::remove_all(folder, ignored);
  return status;
}

}  // namespace ranktap::collector
