// The legend below the axes: colours, sizes, notes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "collector/export/roofline/roofline_picture.h"

namespace ranktap::collector {

struct RooflinePicture::Item {
  std::string style, text;
  double radius = 6;
  std::string level;
};

double RooflinePicture::DrawLegend(double top) {
  std::vector<Item> items;
  for (const std::string& type : colors_.types()) {
    items.push_back({"point " + colors_.ClassOf(type), type});
  }
  for (int64_t ns = longest_ns_; !points_.empty() && ns > longest_ns_ / 1'000; ns /= 10) {
    const double radius =
        kLargest * std::sqrt(static_cast<double>(ns) / static_cast<double>(longest_ns_));
    if (radius < kSmallest) break;
    items.push_back({"key", PointTime(ns), radius});
  }
  for (const char* const level : {"L1", "L2", "memory"}) {
    const bool is_there =
        std::ranges::any_of(points_, [level](const auto* of) { return of->level == level; });
    if (is_there) {
      items.push_back({"key", fmt::format("bytes of {}, by counters", level), kLevelMark, level});
    }
  }
  if (std::ranges::any_of(points_, &ChartPoint::above_roof)) {
    items.push_back({"above", "above its roof: a wrong count, no fact"});
  }
  if (std::ranges::any_of(points_, &ChartPoint::at_best)) {
    items.push_back({"key", "hollow: at best, on its roof; no time was measured"});
  }
  double x = kLeft, y = top, high = 0;
  for (const Item& item : items) {
    const double width = 2 * item.radius + 6 + TextWidth(item.text, kFont) + 20;
    if (x + width > kRight && x > kLeft) {
      x = kLeft;
      y += 2 * high + 6;
      high = 0;
    }
    high = std::max(high, std::max(item.radius, 8.0));
    out_ += MarkOfLevel(item.level, item.style, x + item.radius, y + 8, item.radius) + "\n";
    Text(x + 2 * item.radius + 6, y + 12, "", item.text);
    x += width;
  }
  return y + std::max(high, 8.0) + 16;
}

double RooflinePicture::DrawNotes(double top) {
  std::vector<std::string> notes = chart_.notes;
  if (placeless_ > 0) {
    notes.push_back(fmt::format(
        "{} point{} of {} without a place here: no FLOPs are counted of them (copies, sums, "
        "activations), or no bytes or no time.",
        placeless_, placeless_ == 1 ? "" : "s", PointTime(placeless_ns_)));
  }
  double y = top;
  for (const std::string& note : notes) {
    std::string line;
    for (size_t at = 0; at < note.size();) {
      const size_t end = std::min(note.find(' ', at), note.size());
      const std::string word = note.substr(at, end - at);
      if (!line.empty() && TextWidth(line + " " + word, kFont) > kRight - kLeft) {
        Text(kLeft, y += kLineHeight, "dim", line);
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
      at = end + 1;
    }
    if (!line.empty()) Text(kLeft, y += kLineHeight, "dim", line);
  }
  return y;
}

}  // namespace ranktap::collector
