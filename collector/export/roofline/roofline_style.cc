#include "collector/export/roofline/roofline_style.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/export/roofline/log_axis.h"
#include "collector/file/markup_text.h"
#include "collector/file/printable.h"

namespace ranktap::collector {

TypeColors::TypeColors(const RooflineChart& chart) {
  const auto add = [this](const std::string& type) {
    if (!type.empty() && std::ranges::find(types_, type) == types_.end()) types_.push_back(type);
  };
  for (const ChartCeiling& ceiling : chart.ceilings) add(ceiling.type);
  for (const ChartPoint& point : chart.points) add(point.type);
}

std::string TypeColors::ClassOf(const std::string& type) const {
  const auto found = std::ranges::find(types_, type);
  if (found == types_.end()) return fmt::format("t{}", kTypeColors - 1);
  return fmt::format("t{}", static_cast<size_t>(found - types_.begin()) % kTypeColors);
}

std::string MarkOfLevel(std::string_view level, std::string_view style, double x, double y,
                        double radius) {
  if (level == "L1") {
    return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}h{:.1f}z\"/>", style, x,
                       y - radius, 0.87 * radius, 1.5 * radius, -1.74 * radius);
  }
  if (level == "L2") {
    const double side = 1.6 * radius;
    return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z\"/>", style,
                       x - side / 2, y - side / 2, side, side, -side);
  }
  if (level == "memory") {
    return fmt::format(
        "<path class=\"{0}\" d=\"M{1:.1f} {2:.1f}l{3:.1f} {3:.1f}l{4:.1f} {3:.1f}l{4:.1f} "
        "{4:.1f}z\"/>",
        style, x, y - radius, radius, -radius);
  }
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", style, x, y,
                     radius);
}

std::string PointFlops(double flops) { return WithPrefix(flops) + "FLOP/s"; }

std::string PointTime(int64_t ns) {
  const auto time = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", time / 1e3);
  return ns < 1'000'000'000 ? fmt::format("{:.3g} ms", time / 1e6)
                            : fmt::format("{:.3g} s", time / 1e9);
}

std::string PointTitle(const ChartPoint& point) {
  std::vector<std::string> lines = {point.label};
  if (point.above_roof) {
    lines.emplace_back("ABOVE ITS ROOF: its count, its type or the peak is wrong");
  }
  if (point.at_best) lines.emplace_back("at best: no time was measured");
  if (!point.level.empty()) lines.push_back("by the bytes that passed " + point.level);
  lines.push_back(fmt::format("{} at {:.3g} FLOP/B, {}", PointFlops(point.attained),
                              point.intensity, PointTime(point.time_ns)));
  if (point.roof && *point.roof > 0) {
    lines.push_back(fmt::format("{:.1f} % of its roof of {}", 100 * point.attained / *point.roof,
                                PointFlops(*point.roof)));
  }
  if (!point.bound.empty()) lines.push_back("bound: " + point.bound);
  if (point.saved_ns) lines.push_back("saved at its roof: " + PointTime(*point.saved_ns));
  if (!point.type.empty()) lines.push_back(point.type);
  if (point.rank) lines.push_back(fmt::format("rank {}", *point.rank));
  std::string title;
  for (const std::string& line : lines) title += (title.empty() ? "" : "\n") + MarkupText(line);
  return title;
}

std::string Shortened(const std::string& text, size_t most) {
  std::string clean = Printable(text);
  std::vector<std::string_view> characters;
  for (std::string_view rest = clean; !rest.empty();) {
    const size_t length = std::max<size_t>(Utf8Length(rest), 1);
    characters.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (characters.size() <= most) return clean;
  const size_t kept = most - 1, head = kept * 2 / 3;
  std::string out;
  for (size_t i = 0; i < head; ++i) out += characters[i];
  out += "\u2026";
  for (size_t i = characters.size() - (kept - head); i < characters.size(); ++i) {
    out += characters[i];
  }
  return out;
}

}  // namespace ranktap::collector
