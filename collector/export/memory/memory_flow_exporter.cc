#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "collector/export/memory/memory_picture.h"
#include "collector/export/output_file.h"
#include "collector/facts/framework/block_layouts.h"
#include "collector/facts/framework/memory_blocks.h"
#include "collector/trace/device_label.h"

namespace ranktap::collector {
namespace {

constexpr double kUnitNs = 100e3, kUnitBytes = 1e6;

std::string Shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::string Milliseconds(int64_t ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
}

std::string Mebibytes(int64_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes)
                      : fmt::format("{:.3f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// The place of each address when those that no block ever had are left out.
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

// Pixels of the picture: the blocks' place, and what is around it.
struct Frame {
  static constexpr double kWidth = 1600, kHeight = 800;
  static constexpr double kLeft = 110, kRight = 20, kTop = 64, kBottom = 56;
  static constexpr double kInnerWidth = kWidth - kLeft - kRight;
  static constexpr double kInnerHeight = kHeight - kTop - kBottom;
};

class Picture {
 public:
  Picture(const Trace& trace, OutputFile* file) : trace_(trace), layouts_(trace), file_(file) {}

  void Draw() {
    const std::vector<DeviceMemory>& devices = HeldMemory(trace_);
    std::vector<Addresses> addresses;
    for (const DeviceMemory& device : devices) {
      bytes_ += addresses.emplace_back(device.blocks).total();
      for (const HeldBlock& block : device.blocks) {
        first_ = std::min(first_, block.start);
        last_ = std::max(last_, block.alive ? block.start : block.end);
        ++of_category_[static_cast<size_t>(block.category)];
      }
    }
    // Live blocks last until the run's end, which is far behind the recorded time.
    last_ = std::max(last_ + (last_ - first_) / 50, first_ + 1);
    Begin();
    uint64_t below = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      for (const HeldBlock& block : devices[i].blocks) {
        DrawBlock(block, devices[i].device, below + addresses[i].At(block.address));
      }
      below += addresses[i].total();
    }
    DrawFrame();
    file_->Write("</svg>\n");
  }

 private:
  // Blocks are in units of time and bytes, as MegEngine's viewer takes them; what is around them is
  // in pixels, in a picture of its own that covers all of this one.
  void Begin() {
    const double x = X(last_) / Frame::kInnerWidth, y = Y(bytes_) / Frame::kInnerHeight;
    const std::string box = fmt::format("{} {} {} {}", -Frame::kLeft * x, -Frame::kTop * y,
                                        Frame::kWidth * x, Frame::kHeight * y);
    place_ = fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", -Frame::kLeft * x,
                         -Frame::kTop * y, Frame::kWidth * x, Frame::kHeight * y);
    file_->Write(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "xmlns:tag=\"https://megengine.org.cn\" width=\"1600\" height=\"800\" "
        "preserveAspectRatio=\"none\" viewBox=\"" +
        box +
        "\">\n<style>.block{stroke:#fff;stroke-width:0.6px;vector-effect:non-scaling-stroke}"
        ".block:hover{stroke:#000;stroke-width:2px}text{font:14px sans-serif}</style>\n"
        "<path d=\"M" +
        fmt::format("{0},{1}h{2}v{3}h-{2}z", -Frame::kLeft * x, -Frame::kTop * y, Frame::kWidth * x,
                    Frame::kHeight * y) +
        "\" fill=\"#fff\"/>\n");
  }

  void DrawFrame() const {
    std::string text = "<svg " + place_ +
                       " viewBox=\"0 0 1600 800\" preserveAspectRatio=\"none\" "
                       "pointer-events=\"none\">\n";
    const auto label = [&text](double x, double y, const char* anchor, const std::string& what) {
      text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                          EscapedForXml(what));
    };
    label(Frame::kLeft, 24, "start",
          fmt::format("Memory flow of {}: each block of memory over its life, at its address",
                      DescribePicture(trace_)));
    double at = Frame::kLeft;
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      if (of_category_[c] == 0) continue;
      const std::string name = CategoryName(static_cast<MemoryCategory>(c));
      text +=
          fmt::format("<path d=\"M{},{}h12v12h-12z\" fill=\"{}\"/>\n", at, 39, kMemoryColors[c]);
      label(at + 17, 50, "start", name);
      at += 40 + 8 * static_cast<double>(name.size());
    }
    const double right = Frame::kLeft + Frame::kInnerWidth, low = Frame::kTop + Frame::kInnerHeight;
    text += fmt::format("<path d=\"M{},{}V{}H{}\" fill=\"none\" stroke=\"#000\"/>\n", Frame::kLeft,
                        Frame::kTop, low, right);
    for (int tick = 0; tick <= 4; ++tick) {
      const double part = tick / 4.0;
      label(Frame::kLeft + part * Frame::kInnerWidth, low + 20, tick == 4 ? "end" : "middle",
            fmt::format("{:.2f}", part * static_cast<double>(last_ - first_) / 1e6));
      label(Frame::kLeft - 8, Frame::kTop + part * Frame::kInnerHeight + 5, "end",
            fmt::format("{:.2f}", part * static_cast<double>(bytes_) / (1 << 20)));
    }
    label(Frame::kLeft + Frame::kInnerWidth / 2, low + 44, "middle", "Time (ms)");
    label(8, Frame::kTop - 12, "start", "Address (MiB)");
    file_->Write(text + "</svg>\n");
  }

  double X(int64_t time) const {
    return static_cast<double>(std::max<int64_t>(time - first_, 0)) / kUnitNs;
  }
  static double Y(uint64_t bytes) { return static_cast<double>(bytes) / kUnitBytes; }

  void DrawBlock(const HeldBlock& block, uint32_t device, uint64_t offset) {
    const int64_t lifetime = block.end - block.start;
    std::string text = "<rect class=\"block\"";
    const auto add = [&text](const char* name, const std::string& value) {
      text += std::string(" ") + name + "=\"" + value + "\"";
    };
    add("x", Shortest(X(block.start)));
    add("y", Shortest(Y(offset)));
    add("width", Shortest(X(std::min(block.end, last_)) - X(block.start)));
    add("height", Shortest(Y(static_cast<uint64_t>(block.bytes))));
    add("fill", kMemoryColors[static_cast<size_t>(block.category)]);
    add("tag:type", "tensor");
    const std::string_view owner = trace_.dictionary.String(trace_.allocations.owner.At(block.row));
    add("tag:name", EscapedForXml(owner.empty() ? block.module : owner));
    add("tag:address", std::to_string(block.address));
    add("tag:size", std::to_string(block.bytes));
    add("tag:layout", EscapedForXml(layouts_.Of(block)));
    add("tag:produced", std::to_string(block.start - first_));
    add("tag:erased", block.alive ? "" : std::to_string(block.end - first_));
    add("tag:duration", std::to_string(lifetime));
    add("tag:group",
        block.op == kNone ? "" : std::to_string(trace_.operators.record_function.At(block.op)));
    add("tag:category", CategoryName(block.category));
    add("tag:device", device == kNone ? "CPU" : DeviceLabel(trace_, device));
    const std::string_view op =
        block.op == kNone ? "" : trace_.dictionary.String(trace_.operators.name[block.op]);
    const std::string life =
        block.alive ? "alive at the end" : fmt::format("for {}", Milliseconds(lifetime));
    file_->Write(
        fmt::format("{}><title>{}</title></rect>\n", text,
                    EscapedForXml(fmt::format("{}, {}{}{}{}{}, from {}, {}", Mebibytes(block.bytes),
                                              CategoryName(block.category), op.empty() ? "" : ", ",
                                              op, block.module.empty() ? "" : " of ", block.module,
                                              Milliseconds(block.start - first_), life))));
  }

  const Trace& trace_;
  const BlockLayouts layouts_;
  OutputFile* file_;
  int64_t first_ = INT64_MAX, last_ = INT64_MIN;
  uint64_t bytes_ = 0;
  std::array<int64_t, kMemoryCategories> of_category_{};
  std::string place_;  // of a picture that covers all of this one
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
