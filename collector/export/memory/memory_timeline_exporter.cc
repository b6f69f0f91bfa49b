#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "collector/analysis/framework/memory_blocks.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"

namespace ranktap::collector {
namespace {

constexpr double kWidth = 1600, kHeight = 600, kMiB = 1 << 20;

// torch.profiler._memory_profiler's, in the order of MemoryCategory.
constexpr std::array<const char*, kMemoryCategories> kColors = {
    "darkgreen", "goldenrod", "black", "mediumpurple", "red", "mediumblue", "royalblue", "grey"};

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
      : all_(trace.allocations), shift_(shift), file_(file) {
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
    file_->Write(
        "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"/><title>Memory timeline</title>\n"
        "<style>body { font: 14px sans-serif; margin: 24px } svg { width: 100%; height: auto } "
        "span { margin-right: 16px } b { display: inline-block; width: 12px; height: 12px; "
        "margin-right: 4px }</style></head>\n<body>\n<h1>Memory timeline</h1>\n<p>At most " +
        Fixed(static_cast<double>(most) / kMiB, 2) + " MiB were held.</p>\n<p>");
    for (size_t category = 0; category < kMemoryCategories; ++category) {
      file_->Write(std::string("<span><b style=\"background: ") + kColors[category] + "\"></b>" +
                   CategoryName(static_cast<MemoryCategory>(category)) + "</span>");
    }
    file_->Write(
        "</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-90 -10 1720 660\" "
        "font-size=\"14\">\n");
    std::vector<int64_t> below(moments.size(), 0);
    for (size_t category = 0; category < kMemoryCategories; ++category) {
      DrawArea(moments, category, most, &below);
    }
    DrawAxes(most);
    file_->Write("</svg>\n</body>\n</html>\n");
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

  // Of each pixel the moment at which most was held, and the last one, where the curve goes on.
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
                             kColors[category], upper, lower));
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
