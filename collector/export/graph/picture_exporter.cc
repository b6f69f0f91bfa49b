// The work graph for people: Graphviz' dot, GraphML for Gephi, yEd and networkx, or a picture where
// Graphviz is installed.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "collector/export/exporters.h"
#include "collector/export/graph/work_graph.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"

extern char** environ;

namespace ranktap::collector {
namespace {

// Graphviz needs minutes for more, and nobody sees anything in them.
constexpr size_t kMostDrawn = 1'000;

std::string Duration(int64_t ns) {
  return ns < 1'000'000 ? fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3)
                        : fmt::format("{:.2f} ms", static_cast<double>(ns) / 1e6);
}

// Short enough for a box, without what a format takes for its own.
std::string Label(const std::string& name, std::string_view special) {
  constexpr size_t kLongest = 48;
  std::string label = name.substr(0, kLongest);
  std::ranges::replace_if(
      label, [special](char c) { return special.find(c) != std::string_view::npos; }, ' ');
  return SanitizedName(label);
}
std::string XmlLabel(const std::string& name) { return Label(name, "\"\\&<>"); }

// The first line of a box names a thread by its number, not by PyTorch's name for all of them.
std::string BoxName(const WorkNode& node) {
  if (node.name == "[pytorch|profiler|execution_trace|thread]") {
    return fmt::format("thread {}", node.thread);
  }
  return Label(node.name, "\"\\");
}

// "\nallreduce, 1048576 B, group 0" as a line of a box; empty: it does not communicate.
std::string Communication(const WorkNode& node) {
  using Kind = WorkNode::Kind;
  if (node.kind == Kind::kSend) {
    return fmt::format("\\nto rank {}, {} B, tag {}", node.destination, node.message, node.tag);
  }
  if (node.kind == Kind::kReceive) {
    return fmt::format("\\nfrom rank {}, {} B, tag {}", node.source, node.message, node.tag);
  }
  if (node.kind != Kind::kCollective) return {};
  return fmt::format("\\n{}, {} B, group {}", node.collective, node.message,
                     Label(node.group, "\"\\"));
}

const char* KindOf(const WorkNode& node) {
  if (node.kind == WorkNode::Kind::kSend) return "send";
  if (node.kind == WorkNode::Kind::kReceive) return "receive";
  if (node.kind == WorkNode::Kind::kCollective) return "collective";
  return node.on_host ? "host" : "device";
}

const char* ColorOf(const WorkNode& node) {
  if (node.kind != WorkNode::Kind::kCompute) return "#f4a582";
  return node.on_host ? "#ffffff" : "#92c5de";
}

void WriteDot(const WorkGraph& graph, OutputFile* file) {
  // The limits keep dot from polishing a picture for minutes.
  file->Write(
      "digraph work {\n  nslimit=1; nslimit1=1; mclimit=0.2;\n"
      "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const WorkNode& node = graph.nodes[i];
    const std::string lane = node.stream >= 0 ? fmt::format(", stream {}", node.stream) : "";
    file->Write(fmt::format("  n{} [label=\"{}\\n{}{}{}\", fillcolor=\"{}\"];\n", i + 1,
                            BoxName(node), Duration(node.duration), lane, Communication(node),
                            ColorOf(node)));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const WorkNode& node = graph.nodes[i];
    for (const uint32_t on : node.data) file->Write(fmt::format("  n{} -> n{};\n", on + 1, i + 1));
    // Dashed with a bar, as in Chakra's own pictures.
    for (const uint32_t on : node.control) {
      if (std::ranges::binary_search(node.data, on)) continue;
      file->Write(fmt::format("  n{} -> n{} [style=dashed, arrowhead=tee, constraint=false];\n",
                              on + 1, i + 1));
    }
  }
  file->Write("}\n");
}

constexpr std::string_view kGraphMlHead =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
    "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
    "<key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n"
    "<key id=\"kind\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n"
    "<key id=\"phase\" for=\"node\" attr.name=\"phase\" attr.type=\"string\"/>\n"
    "<key id=\"start\" for=\"node\" attr.name=\"start_ns\" attr.type=\"long\"/>\n"
    "<key id=\"duration\" for=\"node\" attr.name=\"duration_ns\" attr.type=\"long\"/>\n"
    "<key id=\"flops\" for=\"node\" attr.name=\"flops\" attr.type=\"long\"/>\n"
    "<key id=\"bytes\" for=\"node\" attr.name=\"bytes\" attr.type=\"long\"/>\n"
    "<key id=\"stream\" for=\"node\" attr.name=\"stream\" attr.type=\"long\"/>\n"
    "<key id=\"dependency\" for=\"edge\" attr.name=\"dependency\" attr.type=\"string\"/>\n"
    "<graph edgedefault=\"directed\">\n";

void WriteGraphMl(const WorkGraph& graph, OutputFile* file) {
  file->Write(kGraphMlHead);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const WorkNode& node = graph.nodes[i];
    file->Write(
        fmt::format("<node id=\"n{}\"><data key=\"name\">{}</data><data key=\"kind\">{}</data>"
                    "<data key=\"phase\">{}</data><data key=\"start\">{}</data>"
                    "<data key=\"duration\">{}</data><data key=\"flops\">{}</data>"
                    "<data key=\"bytes\">{}</data><data key=\"stream\">{}</data></node>\n",
                    i + 1, XmlLabel(node.name), KindOf(node), node.phase, node.start, node.duration,
                    node.flops, node.bytes, node.stream));
  }
  const auto edge = [file](uint32_t from, size_t to, const char* kind) {
    file->Write(fmt::format(
        "<edge source=\"n{}\" target=\"n{}\"><data key=\"dependency\">{}</data></edge>\n", from + 1,
        to + 1, kind));
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const uint32_t on : graph.nodes[i].data) edge(on, i, "data");
    for (const uint32_t on : graph.nodes[i].control) edge(on, i, "control");
  }
  file->Write("</graph>\n</graphml>\n");
}

// Graphviz, on a file of dot.
std::optional<Failure> Draw(const std::string& dot, const std::string& picture) {
  std::string program = "dot", format = "-Tsvg", output = "-o" + picture, input = dot;
  char* arguments[] = {program.data(), format.data(), output.data(), input.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, "dot", nullptr, nullptr, arguments, environ) != 0) {
    return Failure{
        fmt::format("{}: a picture needs Graphviz (dot) on the PATH; an output that ends with .dot "
                    "or .graphml does not",
                    picture)};
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (status == 0) return std::nullopt;
  return Failure{fmt::format("{}: Graphviz could not draw it (status {})", picture, status)};
}

std::optional<Failure> WriteText(const WorkGraph& graph, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  if (path.ends_with(".graphml") || path.ends_with(".graphml.gz")) {
    WriteGraphMl(graph, &*file);
  } else {
    WriteDot(graph, &*file);
  }
  return file->Close();
}

}  // namespace

std::optional<Failure> WriteGraph(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path) {
  const Trace& trace = *traces.front();
  const WorkGraph graph =
      BuildWorkGraph(run, trace, GraphGroups(run), options.Shifted(RealtimeOffset(run, trace)));
  if (!path.ends_with(".svg")) return WriteText(graph, path);
  if (graph.nodes.size() > kMostDrawn) {
    return Failure{
        fmt::format("{}: {} nodes are too many for a picture; name --steps, a --window or a "
                    "--min-duration, or an output that ends with .graphml",
                    path, graph.nodes.size())};
  }
  const std::string dot = path + ".dot";
  auto failure = WriteText(graph, dot);
  if (!failure) failure = Draw(dot, path);
  ::unlink(dot.c_str());
  return failure;
}

}  // namespace ranktap::collector
