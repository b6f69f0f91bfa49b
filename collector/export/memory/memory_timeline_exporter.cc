#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "collector/export/memory/memory_picture.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/facts/framework/memory_blocks.h"
#include "collector/facts/steps.h"
#include "collector/trace/device_label.h"

namespace ranktap::collector {
namespace {

constexpr double kWidth = 1600, kHeight = 600, kMiB = 1 << 20;

std::string Fixed(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// torch.profiler._memory_profiler.Action
enum Action { kPreexisting = 1, kCreate, kIncrementVersion, kDestroy };

class Timeline {
 public:
  Timeline(const Trace& trace, int64_t shift, OutputFile* file)
      : trace_(trace), all_(trace.allocations), shift_(shift), file_(file) {
    for (size_t i = 0; i < all_.size(); ++i) {
      // The first device that is named, as torch writes one device a file.
      if (rows_.empty() || MemoryDeviceOf(all_, i) == MemoryDeviceOf(all_, rows_[0])) {
        rows_.push_back(i);
      }
    }
  }

  void WriteRaw() {
    file_->Write("[");
    for (size_t k = 0; k < rows_.size(); ++k) {
      const size_t i = rows_[k];
      const int64_t bytes = all_.bytes[i];
      const bool existed = bytes > 0 && all_.start[i] == all_.start[rows_[0]];
      const int action = all_.relabelled.At(i) != 0 ? kIncrementVersion
                         : bytes < 0                ? kDestroy
                         : existed                  ? kPreexisting
                                                    : kCreate;
      file_->Write(fmt::format("{}{}, {}, {}, {}]", k == 0 ? "[" : ", [",
                               existed ? -1 : all_.start[i] + shift_, action, bytes,
                               CategoryAt(i)));
    }
    file_->Write("]");
  }

  void WriteCurves() {
    std::string times, sizes;
    std::array<int64_t, kMemoryCategories> levels{};
    for (size_t k = 0; k < rows_.size(); ++k) {
      const size_t i = rows_[k];
      levels[CategoryAt(i)] += all_.bytes[i];
      const int64_t us = (all_.start[i] + shift_) / 1000;
      const bool more = k + 1 < rows_.size() && (all_.start[rows_[k + 1]] + shift_) / 1000 == us;
      if (more) continue;
      times += (times.empty() ? "" : ", ") + std::to_string(us);
      sizes += sizes.empty() ? "[0" : ", [0";
      for (const int64_t level : levels) sizes += fmt::format(", {}", level);
      sizes += "]";
    }
    file_->Write("[[" + times + "], [" + sizes + "]]");
  }

  // Stacked as torch stacks them.
  void WriteHtml() {
    const std::vector<Moment> moments = Sampled();
    int64_t most = 1;
    for (const Moment& moment : moments) most = std::max(most, moment.total());
    const uint32_t device = MemoryDeviceOf(all_, rows_[0]);
    const std::string whose = EscapedForXml(fmt::format(
        "{}, {}", DescribePicture(trace_), device == kNone ? "CPU" : DeviceLabel(trace_, device)));
    file_->Write(
        "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"/><title>Memory timeline of " +
        whose +
        "</title>\n"
        "<style>body { font: 14px sans-serif; margin: 24px } svg { width: 100%; height: auto } "
        "span { margin-right: 16px } b { display: inline-block; width: 12px; height: 12px; "
        "margin-right: 4px }</style></head>\n<body>\n<h1>Memory timeline of " +
        whose + "</h1>\n<p>At most " + Fixed(static_cast<double>(most) / kMiB, 2) +
        " MiB were held, at the dashed line. <span id=\"told\">Point at the picture for what is "
        "held at a moment.</span></p>\n<p>");
    for (size_t category = 0; category < kMemoryCategories; ++category) {
      file_->Write(std::string("<span><b style=\"background: ") + kMemoryColors[category] +
                   "\"></b>" + CategoryName(static_cast<MemoryCategory>(category)) + "</span>");
    }
    file_->Write(
        "</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-90 -10 1720 660\" "
        "font-size=\"14\">\n");
    std::vector<int64_t> below(moments.size(), 0);
    for (size_t category = 0; category < kMemoryCategories; ++category) {
      DrawArea(moments, category, most, &below);
    }
    DrawSteps();
    DrawPeak(moments, most);
    DrawAxes(most);
    file_->Write("<path id=\"at\" stroke=\"black\" d=\"\"/>\n</svg>\n");
    WriteHover(moments);
    file_->Write("</body>\n</html>\n");
  }

 private:
  using Levels = std::array<int64_t, kMemoryCategories>;
  struct Moment {
    double x = 0;
    Levels levels{};
    int64_t total() const {
      int64_t sum = 0;
      for (const int64_t level : levels) sum += level;
      return sum;
    }
  };

  double X(size_t k) const {
    const int64_t first = all_.start[rows_.front()], last = all_.start[rows_.back()];
    return kWidth * static_cast<double>(all_.start[rows_[k]] - first) /
           static_cast<double>(std::max<int64_t>(last - first, 1));
  }

  // For each pixel the moment at which most was held, and the last one, where the curve goes on.
  std::vector<Moment> Sampled() const {
    std::vector<Moment> moments;
    Moment now, highest;
    for (size_t k = 0; k < rows_.size(); ++k) {
      now.levels[CategoryAt(rows_[k])] += all_.bytes[rows_[k]];
      now.x = X(k);
      const bool same_moment =
          k + 1 < rows_.size() && all_.start[rows_[k + 1]] == all_.start[rows_[k]];
      if (same_moment) continue;
      if (highest.total() <= now.total()) highest = now;
      const bool same_pixel = k + 1 < rows_.size() && std::floor(X(k + 1)) == std::floor(now.x);
      if (same_pixel) continue;
      moments.push_back(highest);
      if (highest.x != now.x) moments.push_back(now);
      highest = {};
    }
    return moments;
  }

  // A curve of steps: what is held is held until the next moment.
  void DrawArea(const std::vector<Moment>& moments, size_t category, int64_t most,
                std::vector<int64_t>* below) {
    const auto y = [most](int64_t bytes) {
      return Fixed(kHeight - kHeight * static_cast<double>(bytes) / static_cast<double>(most), 2);
    };
    const auto edge = [&](size_t i) { return i + 1 < moments.size() ? moments[i + 1].x : kWidth; };
    std::string upper, lower;
    bool is_empty = true;
    for (size_t i = 0; i < moments.size(); ++i) {
      const int64_t bottom = (*below)[i], top = bottom + moments[i].levels[category];
      is_empty = is_empty && top == bottom;
      const std::string from = Fixed(moments[i].x, 2), to = Fixed(edge(i), 2);
      upper += fmt::format("{},{} {},{} ", from, y(top), to, y(top));
      lower.insert(0, fmt::format("{},{} {},{} ", to, y(bottom), from, y(bottom)));
      (*below)[i] = top;
    }
    if (is_empty) return;
    file_->Write(fmt::format("<polygon fill=\"{}\" fill-opacity=\"0.7\" points=\"{}{}\"/>\n",
                             kMemoryColors[category], upper, lower));
  }

  // The beginnings of the steps that are in the picture.
  void DrawSteps() {
    constexpr size_t kMostMarks = 60;
    const int64_t first = all_.start[rows_.front()], last = all_.start[rows_.back()];
    std::vector<const Step*> inside;
    for (const Step& step : DetectSteps(trace_).list) {
      if (step.start >= first && step.start <= last) inside.push_back(&step);
    }
    if (inside.size() > kMostMarks) return;
    for (const Step* const step : inside) {
      const double x = kWidth * static_cast<double>(step->start - first) /
                       static_cast<double>(std::max<int64_t>(last - first, 1));
      file_->Write(fmt::format(
          "<path d=\"M{0},0V600\" stroke=\"#999\" stroke-width=\"0.7\"/>\n<text x=\"{1}\" y=\"12\" "
          "fill=\"#555\">step {2}</text>\n",
          Fixed(x, 1), Fixed(x + 3, 1), step->number));
    }
  }

  void DrawPeak(const std::vector<Moment>& moments, int64_t most) {
    const auto at = std::ranges::find(moments, most, &Moment::total);
    if (at == moments.end()) return;
    file_->Write(fmt::format("<path d=\"M{},0V600\" stroke=\"black\" stroke-dasharray=\"6 4\"/>\n",
                             Fixed(at->x, 1)));
  }

  // Without "<" and "&": the page is XML, too.
  void WriteHover(const std::vector<Moment>& moments) {
    const double ms =
        static_cast<double>(all_.start[rows_.back()] - all_.start[rows_.front()]) / 1e6;
    std::string data, names;
    for (const Moment& moment : moments) {
      data += fmt::format("{}[{}", data.empty() ? "" : ",", Fixed(moment.x, 1));
      for (const int64_t level : moment.levels) data += fmt::format(",{}", level);
      data += "]";
    }
    for (size_t category = 0; category < kMemoryCategories; ++category) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ",",
                           CategoryName(static_cast<MemoryCategory>(category)));
    }
    file_->Write(fmt::format(
        "<script>\nconst moments = [{}], names = [{}], ms = {};\n"
        "const svg = document.querySelector('svg'), told = document.getElementById('told');\n"
        "svg.addEventListener('pointermove', (event) => {{\n"
        "  const box = svg.getBoundingClientRect();\n"
        "  const x = -90 + (event.clientX - box.left) / box.width * 1720;\n"
        "  const before = moments.filter((moment) => x >= moment[0]);\n"
        "  const held = before.length ? before[before.length - 1] : moments[0];\n"
        "  const parts = names.map((name, i) => [name, held[i + 1]]).filter((part) => part[1] > "
        "0);\n"
        "  const mib = (bytes) => (bytes / 1048576).toFixed(2) + ' MiB';\n"
        "  told.textContent = 'At ' + (held[0] / 1600 * ms).toFixed(2) + ' ms: ' + "
        "mib(held.slice(1).reduce((a, b) => a + b)) + ': ' + "
        "parts.map((part) => part[0] + ' ' + mib(part[1])).join(', ');\n"
        "  document.getElementById('at').setAttribute('d', 'M' + held[0] + ',0V600');\n"
        "}});\n</script>\n",
        data, names, Fixed(ms, 6)));
  }

  void DrawAxes(int64_t most) {
    const double ms =
        static_cast<double>(all_.start[rows_.back()] - all_.start[rows_.front()]) / 1e6;
    file_->Write("<path d=\"M0,0 V600 H1600\" fill=\"none\" stroke=\"black\"/>\n");
    for (int tick = 0; tick <= 4; ++tick) {
      const double part = tick / 4.0;
      file_->Write(fmt::format(
          "<text x=\"{}\" y=\"620\" text-anchor=\"middle\">{}</text>\n<text x=\"-6\" y=\"{}\" "
          "text-anchor=\"end\">{}</text>\n",
          Fixed(kWidth * part, 0), Fixed(ms * part, 2), Fixed(kHeight * (1 - part) + 5, 0),
          Fixed(static_cast<double>(most) / kMiB * part, 2)));
    }
    file_->Write(
        "<text x=\"800\" y=\"642\" text-anchor=\"middle\">Time (ms)</text>\n<text x=\"-70\" "
        "y=\"300\" transform=\"rotate(-90 -70 300)\" text-anchor=\"middle\">Memory (MiB)</text>\n");
  }

  size_t CategoryAt(size_t row) const {
    const uint8_t told = all_.category.At(row);
    return told == 0 ? kMemoryCategories - 1 : std::min<size_t>(told - 1u, kMemoryCategories - 1);
  }

  const Trace& trace_;
  const Allocations& all_;
  int64_t shift_;
  OutputFile* file_;
  std::vector<size_t> rows_;
};

}  // namespace

std::optional<Failure> WriteMemoryTimeline(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions&, const std::string& path) {
  const Trace& trace = *traces[0];
  if (trace.allocations.size() == 0) {
    return Failure{
        fmt::format("{}: no memory in it: record with ranktap run --level full, or with "
                    "torch.profiler's profile_memory=True",
                    trace.path)};
  }
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  Timeline timeline(trace, RealtimeOffset(run, trace), &*file);
  if (path.ends_with(".html")) {
    timeline.WriteHtml();
  } else if (path.find(".raw", path.rfind('/') + 1) != std::string::npos) {
    timeline.WriteRaw();
  } else {
    timeline.WriteCurves();
  }
  return file->Close();
}

}  // namespace ranktap::collector
