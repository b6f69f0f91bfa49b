#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "collector/analysis/framework/block_layouts.h"
#include "collector/analysis/framework/memory_blocks.h"
#include "collector/export/output_file.h"

namespace ranktap::collector {
namespace {

constexpr double kUnitNs = 100e3, kUnitBytes = 1e6;

// MegEngine's: the first threshold that the lifetime does not exceed.
const char* ColorOf(int64_t lifetime_ns) {
  struct Shade {
    int64_t longest;
    const char* color;
  };
  static constexpr std::array<Shade, 6> kShades = {{{0, "#DDDDDD"},
                                                    {100'000, "#CCCCCC"},
                                                    {1'000'000, "#BBBBBB"},
                                                    {10'000'000, "#AAAAAA"},
                                                    {100'000'000, "#999999"},
                                                    {1'000'000'000, "#888888"}}};
  for (const Shade& shade : kShades) {
    if (lifetime_ns <= shade.longest) return shade.color;
  }
  return "#555555";
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char byte : text) {
    switch (byte) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML has no control characters, and a name may hold any byte.
        escaped +=
            static_cast<unsigned char>(byte) < 0x20 || static_cast<unsigned char>(byte) > 0x7e
                ? '?'
                : byte;
    }
  }
  return escaped;
}

std::string Shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

// Where each address lies when those that no block ever had are left out.
class Addresses {
 public:
  explicit Addresses(const std::vector<HeldBlock>& blocks) {
    std::vector<std::pair<uint64_t, uint64_t>> spans;
    for (const HeldBlock& block : blocks) {
      spans.emplace_back(block.address, block.address + static_cast<uint64_t>(block.bytes));
    }
    std::sort(spans.begin(), spans.end());
    for (const auto& [begin, end] : spans) {
      if (parts_.empty() || begin > parts_.back().end) {
        parts_.push_back({begin, end, total_});
      } else if (end > parts_.back().end) {
        total_ -= parts_.back().end - parts_.back().begin;
        parts_.back().end = end;
      } else {
        continue;
      }
      total_ += parts_.back().end - parts_.back().begin;
    }
  }
  uint64_t total() const { return total_; }
  uint64_t At(uint64_t address) const {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), address,
                                        [](uint64_t at, const Part& p) { return at < p.begin; });
    const Part& part = *std::prev(after);
    return part.offset + address - part.begin;
  }

 private:
  struct Part {
    uint64_t begin, end, offset;
  };
  std::vector<Part> parts_;
  uint64_t total_ = 0;
};

class Picture {
 public:
  Picture(const Trace& trace, OutputFile* file) : trace_(trace), layouts_(trace), file_(file) {}

  void Draw() {
    const std::vector<DeviceMemory>& devices = HeldMemory(trace_);
    std::vector<Addresses> addresses;
    uint64_t height = 0;
    for (const DeviceMemory& device : devices) {
      height += addresses.emplace_back(device.blocks).total();
      for (const HeldBlock& block : device.blocks) {
        first_ = std::min(first_, block.start);
        last_ = std::max(last_, block.end);
      }
    }
    const std::string size = Shortest(X(last_)) + " " + Shortest(Y(height));
    file_->Write(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "xmlns:tag=\"https://megengine.org.cn\" width=\"1600\" height=\"800\" "
        "preserveAspectRatio=\"none\" viewBox=\"0 0 " +
        size + "\">\n<rect x=\"0\" y=\"0\" width=\"" + Shortest(X(last_)) + "\" height=\"" +
        Shortest(Y(height)) + "\" fill=\"blue\"/>\n");
    uint64_t below = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      for (const HeldBlock& block : devices[i].blocks) {
        DrawBlock(block, devices[i].device, below + addresses[i].At(block.address));
      }
      below += addresses[i].total();
    }
    file_->Write("</svg>\n");
  }

 private:
  double X(int64_t time) const {
    return static_cast<double>(std::max<int64_t>(time - first_, 0)) / kUnitNs;
  }
  static double Y(uint64_t bytes) { return static_cast<double>(bytes) / kUnitBytes; }

  void DrawBlock(const HeldBlock& block, uint32_t device, uint64_t offset) {
    const int64_t lifetime = block.end - block.start;
    std::string text = "<rect";
    const auto add = [&text](const char* name, const std::string& value) {
      text += std::string(" ") + name + "=\"" + value + "\"";
    };
    add("x", Shortest(X(block.start)));
    add("y", Shortest(Y(offset)));
    add("width", Shortest(static_cast<double>(lifetime) / kUnitNs));
    add("height", Shortest(Y(static_cast<uint64_t>(block.bytes))));
    add("fill", ColorOf(block.alive ? INT64_MAX : lifetime));
    add("tag:type", "tensor");
    const std::string_view owner = trace_.dictionary.String(trace_.allocations.owner.At(block.row));
    add("tag:name", Escaped(owner.empty() ? block.module : owner));
    add("tag:address", std::to_string(block.address));
    add("tag:size", std::to_string(block.bytes));
    add("tag:layout", Escaped(layouts_.Of(block)));
    add("tag:produced", std::to_string(block.start - first_));
    add("tag:erased", block.alive ? "" : std::to_string(block.end - first_));
    add("tag:duration", std::to_string(lifetime));
    add("tag:group",
        block.op == kNone ? "" : std::to_string(trace_.operators.record_function.At(block.op)));
    add("tag:category", CategoryName(block.category));
    add("tag:device", device == kNone ? "CPU" : fmt::format("GPU {}", device));
    file_->Write(text + "/>\n");
  }

  const Trace& trace_;
  const BlockLayouts layouts_;
  OutputFile* file_;
  int64_t first_ = INT64_MAX, last_ = INT64_MIN;
};

std::optional<Failure> Missing(const Trace& trace) {
  if (!HeldMemory(trace).empty()) return std::nullopt;
  return Failure{
      fmt::format("{}: no blocks of memory in it: record with ranktap run --level full, or with "
                  "torch.profiler's profile_memory=True",
                  trace.path)};
}

}  // namespace

std::optional<Failure> WriteMemoryFlow(const Run&, std::span<const Trace* const> traces,
                                       const ExportOptions&, const std::string& path) {
  if (auto missing = Missing(*traces[0])) return missing;
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  Picture(*traces[0], &*file).Draw();
  return file->Close();
}

}  // namespace ranktap::collector
