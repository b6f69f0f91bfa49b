#include "collector/import/inductor/generated_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "collector/file/json.h"
#include "collector/import/byte_source.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = 256u << 20;
constexpr size_t kMostFiles = 100'000;

// Calls `with` for each line, without its end.
template <typename With>
void ForEachLine(std::string_view text, With&& with) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    with(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

FxNodes NodesOf(std::string_view graph) {
  FxNodes nodes;
  std::string line;
  ForEachLine(graph, [&](std::string_view text) { ReadFxLine(text, &line, &nodes); });
  return nodes;
}

// "triton_poi_fused_add_0" of "    triton_poi_fused_add_0.run(...)" and of
// "triton_poi_fused_add_0 = async_compile.triton(...)"; empty: no kernel.
std::string_view KernelIn(std::string_view code) {
  const size_t from = code.find_first_not_of(' ');
  if (from == std::string_view::npos) return {};
  code.remove_prefix(from);
  for (const std::string_view after : {" = async_compile.triton(", ".run("}) {
    const size_t at = code.find(after);
    if (at != std::string_view::npos && code.find(' ') >= at) return code.substr(0, at);
  }
  return {};
}

// Operators without sizes: "aten.addmm, aten.relu" of "..., Original ATen: [aten.addmm,
// aten.relu]".
std::vector<FusedOperator> OriginalOperators(std::string_view comment) {
  constexpr std::string_view kBefore = "Original ATen: [";
  std::vector<FusedOperator> operators;
  const size_t at = comment.find(kBefore);
  if (at == std::string_view::npos) return operators;
  std::string_view list = comment.substr(at + kBefore.size());
  list = list.substr(0, list.find(']'));
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    std::string name(list.substr(0, end));
    if (const size_t dot = name.find('.'); dot != std::string::npos) name.replace(dot, 1, "::");
    operators.push_back({.name = std::move(name)});
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return operators;
}

// The comments before a kernel.
class Comments {
 public:
  explicit Comments(const FxNodes& lines) : lines_(lines) {}

  void Read(std::string_view text) {
    std::vector<FusedOperator> original = OriginalOperators(text);
    if (!original.empty()) Forget(), original_ = std::move(original);
    std::string none;
    ReadFxLine(text, &none, &nodes_);
    const std::string_view node = FxNodeOf(text);
    if (!node.empty()) order_.emplace_back(node);
  }
  void Forget() {
    nodes_.clear();
    order_.clear();
    original_.clear();
  }
  std::vector<FusedOperator> Operators() const {
    std::vector<FusedOperator> operators;
    for (const std::string& name : order_) {
      const auto node = nodes_.find(name);
      if (node == nodes_.end() || node->second.name.empty()) continue;
      operators.push_back(node->second);
      if (const auto of = lines_.find(name); of != lines_.end()) {
        operators.back().line = of->second.line;
      }
    }
    return operators.empty() ? original_ : operators;
  }

 private:
  const FxNodes& lines_;
  FxNodes nodes_;
  std::vector<std::string> order_;
  std::vector<FusedOperator> original_;
};

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The elements of a list up to the bracket that closes it: "(a, b), c) more" has two.
std::vector<std::string_view> ElementsOf(std::string_view list) {
  std::vector<std::string_view> elements;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool closes = list[i] == ')' || list[i] == ']';
    if ((list[i] == ',' && depth == 0) || (closes && depth == 0)) {
      const std::string_view element = Trimmed(list.substr(from, i - from));
      if (!element.empty()) elements.push_back(element);
      from = i + 1;
    }
    if (closes && --depth < 0) break;
    if (list[i] == '(' || list[i] == '[') ++depth;
  }
  return elements;
}

// Sizes of the buffers that a generated file's call() takes and makes, by their names there.
class Buffers {
 public:
  void Read(std::string_view code) {
    code = Trimmed(code);
    constexpr std::string_view kTakes = "assert_size_stride(";
    if (code.starts_with(kTakes)) {
      const auto elements = ElementsOf(code.substr(kTakes.size()));
      if (elements.size() > 1) Set(elements[0], elements[1]);
      return;
    }
    const size_t equals = code.find(" = ");
    if (equals == std::string_view::npos) return;
    const std::string_view name = code.substr(0, equals), made = code.substr(equals + 3);
    const size_t call = made.find('(');
    const bool is_new = made.starts_with("empty_strided");
    if (call != std::string_view::npos && (is_new || made.starts_with("reinterpret_tensor"))) {
      const auto elements = ElementsOf(made.substr(call + 1));
      const size_t sizes = is_new ? 0 : 1;
      if (elements.size() > sizes) return Set(name, elements[sizes]);
    }
    const auto same = sizes_.find(Trimmed(made.substr(0, made.find(';'))));  // buf1 = buf0
    if (same != sizes_.end()) {
      sizes_[std::string(name)] = same->second;
    } else {
      Forget(name);
    }
  }

  // "[[s0, 64], []]" of what stands between the brackets of a call.
  std::string ShapesOf(std::string_view list) const {
    std::string shapes;
    for (const std::string_view element : ElementsOf(list)) {
      if (element.find('=') != std::string_view::npos) break;  // stream=stream0
      const auto known = sizes_.find(element);
      shapes += (shapes.empty() ? "" : ", ") + (known == sizes_.end() ? "[]" : known->second);
    }
    return "[" + shapes + "]";
  }

 private:
  // "(s0, 64)"
  void Set(std::string_view name, std::string_view sizes) {
    if (!sizes.starts_with('(')) return Forget(name);
    std::string list;
    for (const std::string_view size : ElementsOf(sizes.substr(1))) {
      list += (list.empty() ? "" : ", ") + std::string(size);
    }
    sizes_[std::string(name)] = "[" + list + "]";
  }
  void Forget(std::string_view name) {
    if (const auto known = sizes_.find(name); known != sizes_.end()) sizes_.erase(known);
  }

  std::map<std::string, std::string, std::less<>> sizes_;
};

Result<std::string> ReadWhole(const fs::path& path) {
  Result<ByteSource> source = ByteSource::Open(path.string());
  if (!source) return Failure{source.message()};
  std::string text;
  char part[1 << 16];
  while (const size_t read = source->Read(part, sizeof part)) {
    text.append(part, read);
    if (text.size() > kLargestFile) return Failure{path.string() + ": larger than 256 MiB"};
  }
  return text;
}

FxNodes NodesBeside(const fs::path& file) {
  for (const char* const name : {"fx_graph_transformed.py", "fx_graph_readable.py"}) {
    std::error_code ignored;
    const fs::path graph = file.parent_path() / name;
    if (!fs::exists(graph, ignored)) continue;
    if (const Result<std::string> text = ReadWhole(graph)) return NodesOf(*text);
  }
  return {};
}

void ReadFile(const fs::path& path, std::vector<GeneratedKernel>* kernels) {
  const std::string name = path.filename().string();
  const bool is_log = name.ends_with(".log") && name.find("torch_trace") != std::string::npos;
  const bool is_map = name == "inductor_provenance_tracking_node_mappings.json" ||
                      name == "kernel_information.json";
  if (!is_log && !is_map && !name.ends_with(".py")) return;
  const Result<std::string> text = ReadWhole(path);
  if (!text) return;
  if (is_log) return ReadCompileLog(*text, path.string(), kernels);
  if (is_map) return ReadKernelNodes(*text, path.string(), NodesBeside(path), kernels);
  if (text->find("async_compile") == std::string::npos) return;
  ReadGeneratedFile(*text, path.string(), NodesBeside(path), kernels);
}

// Some operator, whose arithmetic is not known.
FusedOperator Unknown(std::string line = {}) { return {.name = "?", .line = std::move(line)}; }

void AddNodes(const Json& list, const FxNodes& nodes, GeneratedKernel* kernel) {
  if (!list.is_array()) return;
  for (const Json& node : list) {
    if (!node.is_string()) continue;
    const auto found = nodes.find(node.text());
    if (found == nodes.end()) {
      kernel->operators.push_back(Unknown());
    } else if (!found->second.name.empty()) {
      kernel->operators.push_back(found->second);
    }
  }
}

// The innermost frame of each: "  File \"net.py\", line 9, in forward".
void AddStacks(const Json& stacks, GeneratedKernel* kernel) {
  if (!stacks.is_array()) return;
  for (const Json& stack : stacks) {
    if (!stack.is_string()) continue;
    const std::string& text = stack.text();
    const size_t file = text.rfind("File \"");
    const size_t line = text.find("\", line ", std::min(file, text.size()));
    const size_t in = text.find(", in ", std::min(line, text.size()));
    if (in == std::string::npos) continue;
    const size_t end = std::min(text.find('\n', in), text.size());
    kernel->operators.push_back(Unknown(text.substr(file + 6, line - file - 6) + "(" +
                                        text.substr(line + 8, in - line - 8) +
                                        "): " + text.substr(in + 5, end - in - 5)));
  }
}

// Of kernels that the mapping of their compilation does not have: PyTorch maps no backward's.
void ReadKernelStacks(std::string_view json, const std::string& file, size_t first,
                      std::vector<GeneratedKernel>* kernels) {
  const Json root = ParseJson(json);
  if (!root.is_object()) return;
  for (const auto& [key, value] : root.items()) {
    GeneratedKernel kernel{.name = key.substr(0, key.find(':')), .file = file};
    const bool is_known = std::any_of(kernels->begin() + static_cast<ptrdiff_t>(first),
                                      kernels->end(), [&](const GeneratedKernel& of) {
                                        return of.name == kernel.name && !of.operators.empty() &&
                                               of.operators[0].name != "?";
                                      });
    if (is_known || kernel.name.starts_with("extern_kernels")) continue;
    AddStacks(value, &kernel);
    kernels->push_back(std::move(kernel));
  }
}

auto KeyOf(const GeneratedKernel& kernel) {
  std::string operators = kernel.arguments + '\n';
  for (const FusedOperator& op : kernel.operators) {
    operators += op.name + op.shapes + op.values + op.output + op.line + '\n';
  }
  return std::pair(kernel.name, std::move(operators));
}

}  // namespace

void ReadGeneratedFile(std::string_view text, const std::string& file, const FxNodes& lines,
                       std::vector<GeneratedKernel>* kernels) {
  Comments comments(lines);
  Buffers buffers;
  std::map<std::string, size_t, std::less<>> known;
  ForEachLine(text, [&](std::string_view line) {
    const size_t from = line.find_first_not_of(' ');
    if (from != std::string_view::npos && line[from] == '#') return comments.Read(line);
    const std::string_view kernel = KernelIn(line);
    if (kernel.empty()) return buffers.Read(line);
    std::vector<FusedOperator> operators = comments.Operators();
    comments.Forget();
    const auto [at, is_new] = known.try_emplace(std::string(kernel), kernels->size());
    if (is_new) kernels->push_back({std::string(kernel), file, std::move(operators), {}});
    GeneratedKernel& of = (*kernels)[at->second];
    constexpr std::string_view kCall = ".run(";
    const size_t call = line.find(kCall);
    if (call == std::string_view::npos || !of.arguments.empty()) return;
    of.arguments = buffers.ShapesOf(line.substr(call + kCall.size()));
  });
}

void ReadKernelNodes(std::string_view json, const std::string& file, const FxNodes& nodes,
                     std::vector<GeneratedKernel>* kernels) {
  const Json root = ParseJson(json);
  if (!root.is_object()) return;
  const bool is_mapping = root.contains("cppCodeToPost");
  const Json& by_kernel = is_mapping ? root["cppCodeToPost"] : root;
  if (!by_kernel.is_object()) return;
  for (const auto& [key, value] : by_kernel.items()) {
    GeneratedKernel kernel{.name = key.substr(0, key.find(':')), .file = file};
    // PyTorch's own operators have records of their own.
    if (kernel.name.starts_with("extern_kernels") || kernel.name.starts_with("aten.")) continue;
    if (value.is_object()) {
      AddNodes(value["post_grad_nodes"], nodes, &kernel);
      if (kernel.operators.empty()) {
        AddStacks(value["stack_traces"], &kernel);
      }
    } else {
      AddNodes(value, nodes, &kernel);
    }
    kernels->push_back(std::move(kernel));
  }
}

void ReadCompileLog(std::string_view text, const std::string& file,
                    std::vector<GeneratedKernel>* kernels) {
  std::string artifact, payload;
  std::map<std::string, FxNodes> graphs;  // the last of each compilation
  std::string compilation;
  std::map<std::string, size_t> first;  // of its kernels
  const auto finish = [&] {
    if (artifact == "inductor_post_grad_graph") {
      graphs[compilation] = NodesOf(payload);
      first[compilation] = kernels->size();
    }
    if (artifact == "inductor_provenance_tracking_kernel_stack_traces") {
      ReadKernelStacks(payload, file, first[compilation], kernels);
    }
    if (artifact == "inductor_provenance_tracking_node_mappings") {
      ReadKernelNodes(payload, file, graphs[compilation], kernels);
    }
    payload.clear();
  };
  ForEachLine(text, [&](std::string_view line) {
    if (line.starts_with('\t')) {
      if (!artifact.empty()) payload.append(line.substr(1)).push_back('\n');
      return;
    }
    finish();
    artifact.clear();
    const size_t brace = line.find("] {");
    if (brace == std::string_view::npos || !line.starts_with('V')) return;
    const Json head = ParseJson(line.substr(brace + 2));
    if (!head.is_object() || !head.contains("artifact")) return;
    if (head["artifact"].is_object()) artifact = head["artifact"].value("name", "");
    compilation.clear();
    for (const char* const key :
         {"frame_id", "frame_compile_id", "attempt", "compiled_autograd_id"}) {
      if (head.contains(key)) compilation += WriteJson(head[key]) + "/";
    }
  });
  finish();
}

Result<std::vector<GeneratedKernel>> ReadGeneratedKernels(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error), end;
  if (error) return Failure{fmt::format("{}: {}", folder, error.message())};
  std::vector<fs::path> files;
  for (; at != end && files.size() < kMostFiles; at.increment(error)) {
    if (error) break;
    if (at->is_regular_file(error)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  std::vector<GeneratedKernel> read;
  for (const fs::path& file : files) ReadFile(file, &read);
  std::map<std::pair<std::string, std::string>, GeneratedKernel> once;
  for (GeneratedKernel& kernel : read) once.try_emplace(KeyOf(kernel), std::move(kernel));
  std::vector<GeneratedKernel> kernels;
  for (auto& [key, kernel] : once) kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace ranktap::collector
