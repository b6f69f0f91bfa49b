#include "collector/export/roofline/roofline_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "collector/file/markup_text.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLabels = 10;
constexpr size_t kLabelCharacters = 34;
constexpr int kMostDecades = 10;
constexpr Box kFrame = {kLeft, kTop, kRight, kBottom};

bool IsPlaceable(const ChartPoint& point) {
  return std::isfinite(point.intensity) && std::isfinite(point.attained) && point.intensity > 0 &&
         point.attained > 0;
}

double Peak(const RooflineChart& chart, bool memory, bool fastest) {
  double peak = 0;
  for (const ChartCeiling& ceiling : chart.ceilings) {
    if (ceiling.is_memory != memory || ceiling.peak <= 0) continue;
    if (peak == 0 || (fastest ? ceiling.peak > peak : ceiling.peak < peak)) peak = ceiling.peak;
  }
  return peak;
}

// Both sides of every ridge, and all points that are facts.
LogAxis XAxis(const RooflineChart& chart) {
  std::vector<double> values;
  const double slow = Peak(chart, true, false), fast = Peak(chart, true, true);
  if (slow > 0 && Peak(chart, false, true) > 0) {
    values.push_back(Peak(chart, false, false) / fast / 10);
    values.push_back(Peak(chart, false, true) / slow * 10);
  }
  for (const ChartPoint& point : chart.points) {
    if (IsPlaceable(point)) values.push_back(point.intensity);
  }
  return {values, kMostDecades, kLeft, kRight};
}

LogAxis YAxis(const RooflineChart& chart) {
  std::vector<double> values;
  const double top = Peak(chart, false, true);
  if (top > 0) values = {top, Peak(chart, false, false) / 30};
  for (const ChartPoint& point : chart.points) {
    // A wrong one does not stretch the axis: it lies at its end.
    if (IsPlaceable(point) && (top == 0 || !point.above_roof)) values.push_back(point.attained);
  }
  return {values, kMostDecades, kBottom, kTop};
}

constexpr const char* kDashes = " stroke-dasharray=\"7 5\"";

constexpr std::string_view kPictureStyle =
    "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:var(--ink)}"
    ".paper{fill:var(--paper)}.title{font-size:16px;font-weight:600}.dim{fill:var(--dim)}"
    ".middle{text-anchor:middle}.end{text-anchor:end}"
    ".grid{stroke:var(--grid);stroke-width:1}.minor{stroke:var(--minor);stroke-width:1}"
    ".frame{fill:none;stroke:var(--dim)}"
    ".roof{fill:none;stroke:var(--c);stroke-width:2}.memory{--c:var(--ink)}"
    ".ridge{fill:var(--paper);stroke:var(--c);stroke-width:1.5}"
    ".drop{stroke:var(--c);stroke-dasharray:2 4;opacity:.7}"
    ".point{fill:var(--c);fill-opacity:.5;stroke:var(--c);stroke-width:1.2}"
    ".above{fill:none;stroke:var(--bad);stroke-width:2;stroke-dasharray:4 2}"
    ".at-best{fill:var(--paper);fill-opacity:.6;stroke:var(--c);stroke-width:2}"
    ".level{fill:var(--c);fill-opacity:.15;stroke:var(--c);stroke-width:1.6}"
    ".levels{stroke:var(--c);stroke-width:1;opacity:.8}"
    ".key{fill:none;stroke:var(--dim)}.leader{stroke:var(--dim);stroke-width:.8}"
    ".name{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}"
    ".colored{fill:var(--c)}.bad{fill:var(--bad)}";

}  // namespace

RooflinePicture::RooflinePicture(const RooflineChart& chart)
    : chart_(chart), colors_(chart), x_(XAxis(chart)), y_(YAxis(chart)), places_(kFrame) {
  for (const ChartCeiling& ceiling : chart.ceilings) {
    if (ceiling.peak > 0) (ceiling.is_memory ? memory_ : compute_).push_back(&ceiling);
  }
  const auto lower = [](const auto* a, const auto* b) { return a->peak < b->peak; };
  std::ranges::stable_sort(memory_, lower);
  std::ranges::stable_sort(compute_, lower);
  for (const ChartPoint& point : chart.points) {
    const bool in_axes = IsPlaceable(point) && x_.Holds(point.intensity) &&
                         (point.above_roof || y_.Holds(point.attained));
    if (!in_axes) {
      ++placeless_;
      placeless_ns_ += point.time_ns;
      continue;
    }
    points_.push_back(&point);
    longest_ns_ = std::max(longest_ns_, point.time_ns);
  }
  std::ranges::stable_sort(
      points_, [](const ChartPoint* a, const ChartPoint* b) { return a->time_ns > b->time_ns; });
}

std::string RooflinePicture::Draw() {
  DrawGrid();
  DrawSlopes();
  DrawLines();
  DrawPoints();
  LabelCeilings();
  DrawRidges();
  LabelPoints();
  if (points_.empty()) DrawEmpty();
  const double height = DrawNotes(DrawLegend(kBottom + 74)) + 8;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" "
             "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}{4}</style>\n"
             "<clipPath id=\"plot\"><rect x=\"{5}\" y=\"{6}\" width=\"{7}\" height=\"{8}\"/>"
             "</clipPath>\n<rect class=\"paper\" width=\"{0}\" height=\"{1:.0f}\"/>\n",
             kWidth, height, MarkupText(chart_.title), kRooflineStyle, kPictureStyle, kLeft, kTop,
             kRight - kLeft, kBottom - kTop) +
         fmt::format("<text class=\"title\" x=\"{}\" y=\"30\">{}</text>\n", kLeft,
                     MarkupText(Shortened(chart_.title, 90))) +
         out_ + "</svg>\n";
}

void RooflinePicture::Text(double x, double y, std::string_view style, std::string_view text) {
  out_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y,
                      MarkupText(text));
}

void RooflinePicture::DrawGrid() {
  const auto line = [this](bool decade, double x1, double y1, double x2, double y2) {
    out_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        decade ? "grid" : "minor", x1, y1, x2, y2);
  };
  for (const bool decade : {false, true}) {
    for (const LogAxis::Mark& mark : x_.Marks()) {
      if (mark.decade == decade) line(decade, mark.at, kTop, mark.at, kBottom);
    }
    for (const LogAxis::Mark& mark : y_.Marks()) {
      if (mark.decade == decade) line(decade, kLeft, mark.at, kRight, mark.at);
    }
  }
  for (const LogAxis::Mark& mark : x_.Marks()) {
    if (mark.decade) Text(mark.at, kBottom + 18, "dim middle", WithPrefix(mark.value));
  }
  for (const LogAxis::Mark& mark : y_.Marks()) {
    if (mark.decade) Text(kLeft - 8, mark.at + 4, "dim end", WithPrefix(mark.value));
  }
  out_ += fmt::format(
      "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n"
      "<text class=\"middle\" x=\"{}\" y=\"{}\">intensity, FLOP/B</text>\n"
      "<text class=\"middle\" transform=\"translate(22 {}) rotate(-90)\">attained, FLOP/s</text>\n",
      kLeft, kTop, kRight - kLeft, kBottom - kTop, (kLeft + kRight) / 2, kBottom + 40,
      (kTop + kBottom) / 2);
}

void RooflinePicture::AvoidLine(double x1, double y1, double x2, double y2) {
  const int pieces = static_cast<int>(std::hypot(x2 - x1, y2 - y1) / 4) + 1;
  for (int i = 0; i < pieces; ++i) {
    const double x = x1 + (x2 - x1) * i / pieces, y = y1 + (y2 - y1) * i / pieces;
    places_.Avoid({x - 2, y - 2, x + 2, y + 2});
  }
}

void RooflinePicture::DrawSlopes() {
  const double top = compute_.empty() ? y_.last() : compute_.back()->peak;
  for (const ChartCeiling* const ceiling : memory_) {
    const double from = x_.first(), to = std::min(x_.last(), top / ceiling->peak);
    if (to <= from) continue;
    out_ += fmt::format(
        "<line class=\"roof memory\"{} clip-path=\"url(#plot)\" x1=\"{:.1f}\" y1=\"{:.1f}\" "
        "x2=\"{:.1f}\" y2=\"{:.1f}\"><title>{}</title></line>\n",
        ceiling->is_dashed ? kDashes : "", x_.At(from), y_.At(from * ceiling->peak), x_.At(to),
        y_.At(to * ceiling->peak),
        MarkupText(fmt::format("{}: {}B/s", ceiling->label, WithPrefix(ceiling->peak))));
  }
}

// The fastest memory says where each line begins; the highest has the place above its line.
void RooflinePicture::LabelCeilings() {
  const double top = compute_.empty() ? y_.last() : compute_.back()->peak;
  for (const ChartCeiling* const ceiling : memory_) {
    const double from = std::max(x_.first(), y_.first() / ceiling->peak);
    const double to = std::min(x_.last(), top / ceiling->peak);
    if (to <= from) continue;
    LabelSlope(*ceiling, from, to);
  }
  for (size_t i = compute_.size(); i-- > 0;) {
    const double from = memory_.empty() ? x_.first() : compute_[i]->peak / memory_.back()->peak;
    LabelLine(*compute_[i], std::max(from, x_.first()));
  }
  for (const ChartCeiling* const ceiling : memory_) {
    const double to = std::min(x_.last(), top / ceiling->peak);
    AvoidLine(kLeft, y_.At(x_.first() * ceiling->peak), x_.At(to), y_.At(to * ceiling->peak));
  }
  for (const ChartCeiling* const ceiling : compute_) {
    const double from = memory_.empty() ? x_.first() : ceiling->peak / memory_.back()->peak;
    AvoidLine(x_.At(from), y_.At(ceiling->peak), kRight, y_.At(ceiling->peak));
  }
}

// Along its slope, from its lower end on.
void RooflinePicture::LabelSlope(const ChartCeiling& ceiling, double from, double to) {
  const std::string text = fmt::format("{} {}B/s", ceiling.label, WithPrefix(ceiling.peak));
  const double x1 = x_.At(from), y1 = y_.At(from * ceiling.peak), x2 = x_.At(to),
               y2 = y_.At(to * ceiling.peak);
  const double length = std::hypot(x2 - x1, y2 - y1), width = TextWidth(text, kFont);
  if (length < width + 24) return;  // its <title> says it
  const double along_x = (x2 - x1) / length, along_y = (y2 - y1) / length;
  const double start = std::min(14.0, length - width);
  // Above its line: to the left of its direction, which is upwards.
  const double x = x1 + along_x * start + along_y * 5, y = y1 + along_y * start - along_x * 5;
  out_ += fmt::format(
      "<text class=\"name\" transform=\"translate({:.1f} {:.1f}) rotate({:.2f})\">{}</text>\n", x,
      y, std::atan2(along_y, along_x) * 180 / std::numbers::pi, MarkupText(text));
  for (double at = 0; at < width; at += kFont / 2) {
    const double left = x + along_x * at, bottom = y + along_y * at;
    places_.Take({left - kFont, bottom - kFont, left + kFont / 2, bottom + 2});
  }
}

void RooflinePicture::DrawLines() {
  for (const ChartCeiling* const ceiling : compute_) {
    const double from =
        memory_.empty() ? x_.first() : std::max(x_.first(), ceiling->peak / memory_.back()->peak);
    if (from >= x_.last()) continue;
    out_ += fmt::format(
        "<line class=\"roof {}\"{} clip-path=\"url(#plot)\" x1=\"{:.1f}\" y1=\"{:.1f}\" "
        "x2=\"{:.1f}\" y2=\"{:.1f}\"><title>{}</title></line>\n",
        colors_.ClassOf(ceiling->type), ceiling->is_dashed ? kDashes : "", x_.At(from),
        y_.At(ceiling->peak), x_.At(x_.last()), y_.At(ceiling->peak),
        MarkupText(fmt::format("{}: {}", ceiling->label, PointFlops(ceiling->peak))));
  }
}

// Above the right end of its line, or below it, or further to the left: where no other label is,
// and no point where there is such a place.
void RooflinePicture::LabelLine(const ChartCeiling& ceiling, double from) {
  const std::string text = fmt::format("{} {}", ceiling.label, PointFlops(ceiling.peak));
  const double width = TextWidth(text, kFont), line = y_.At(ceiling.peak);
  for (const bool beside_points : {true, false}) {
    for (double right = kRight - 6; right - width > x_.At(from); right -= 24) {
      for (const double bottom : {line - 3, line + kLineHeight}) {
        const Box box = {right - width, bottom - kFont, right, bottom + 2};
        if (box.top < kTop || (beside_points && places_.IsAvoided(box))) continue;
        if (!places_.TakeIfFree(box)) continue;
        Text(right, bottom - 1, "name colored end " + colors_.ClassOf(ceiling.type), text);
        return;
      }
    }
  }
}

// The ridges, at which the memory of the points meets the ceilings of their types.
void RooflinePicture::DrawRidges() {
  if (memory_.empty()) return;
  const ChartCeiling& memory = *memory_.front();
  for (const ChartCeiling* const ceiling : compute_) {
    const bool is_used = std::ranges::any_of(
        points_, [&](const ChartPoint* point) { return point->type == ceiling->type; });
    if (!is_used && !(points_.empty() && ceiling == compute_.back())) continue;
    const double ridge = ceiling->peak / memory.peak;
    if (!x_.Holds(ridge) || !y_.Holds(ceiling->peak)) continue;
    const double x = x_.At(ridge), y = y_.At(ceiling->peak);
    const std::string color = colors_.ClassOf(ceiling->type);
    out_ += fmt::format(
        "<line class=\"drop {0}\" x1=\"{1:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{3}\"/>\n"
        "<circle class=\"ridge {0}\" cx=\"{1:.1f}\" cy=\"{2:.1f}\" r=\"4\"><title>{4}</title>"
        "</circle>\n",
        color, x, y, kBottom,
        MarkupText(
            fmt::format("ridge of {} and {}: {:.3g} FLOP/B", ceiling->label, memory.label, ridge)));
    const std::string text = fmt::format("{:.3g}", ridge);
    const double width = TextWidth(text, kFont);
    for (double bottom = kBottom - 5; bottom > kTop + kFont; bottom -= kLineHeight) {
      if (!places_.TakeIfFree({x + 3, bottom - kFont, x + 5 + width, bottom + 2})) continue;
      Text(x + 4, bottom, "name colored " + color, text);
      break;
    }
  }
}

double RooflinePicture::Radius(const ChartPoint& point) const {
  // Marks of levels say by their form what a circle says by its area.
  if (!point.level.empty()) return kLevelMark;
  const double share =
      static_cast<double>(std::max<int64_t>(point.time_ns, 0)) / static_cast<double>(longest_ns_);
  return std::max(point.above_roof ? kSmallestAbove : kSmallest, kLargest * std::sqrt(share));
}

double RooflinePicture::YOf(const ChartPoint& point) const {
  return std::clamp(y_.At(point.attained), kTop, kBottom);
}

std::string RooflinePicture::StyleOf(const ChartPoint& point) const {
  if (point.above_roof) return "above";
  if (!point.level.empty()) return "level " + colors_.ClassOf(point.type);
  return (point.at_best ? "at-best " : "point ") + colors_.ClassOf(point.type);
}

// The levels of one row lie side by side, at one height.
void RooflinePicture::DrawLevels() {
  for (size_t i = 1; i < points_.size(); ++i) {
    const ChartPoint &point = *points_[i], &before = *points_[i - 1];
    if (point.level.empty() || before.level.empty() || point.label != before.label) continue;
    out_ += fmt::format(
        "<line class=\"levels {}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        colors_.ClassOf(point.type), x_.At(before.intensity), YOf(before), x_.At(point.intensity),
        YOf(point));
  }
}

void RooflinePicture::DrawPoints() {
  DrawLevels();
  for (const ChartPoint* const point : points_) {
    const double x = x_.At(point->intensity), y = YOf(*point), radius = Radius(*point);
    out_ += fmt::format("<g><title>{}</title>{}", PointTitle(*point),
                        MarkOfLevel(point->level, StyleOf(*point), x, y, radius));
    if (point->above_roof) {
      out_ +=
          fmt::format("<text class=\"bad middle\" x=\"{:.1f}\" y=\"{:.1f}\">!</text>", x, y + 4);
    }
    out_ += "</g>\n";
    places_.Avoid({x - radius, y - radius, x + radius, y + radius});
  }
}

void RooflinePicture::LabelPoints() {
  size_t labels = 0;
  for (size_t i = 0; i < points_.size() && labels < kLabels; ++i) {
    const ChartPoint& point = *points_[i];
    const bool is_said = std::ranges::any_of(points_, [&point](const ChartPoint* other) {
      return other->level.empty() && other->label == point.label;
    });
    // Else its memory's mark has the name of all levels.
    if (!point.level.empty() && (is_said || point.level != "memory")) continue;
    ++labels;
    std::string text = Shortened(point.label, kLabelCharacters);
    if (point.above_roof) text += " (above its roof)";
    const double x = x_.At(point.intensity), y = YOf(point), radius = Radius(point);
    const auto box = places_.Find(x, y, radius, TextWidth(text, kFont) + 4, kLineHeight);
    if (!box) continue;  // its <title> and the table have it
    // To the nearest point of the label, from the mark's edge.
    const double to_x = std::clamp(x, box->left, box->right),
                 to_y = std::clamp(y, box->top, box->bottom);
    const double away = std::hypot(to_x - x, to_y - y);
    if (away > radius + 6) {
      out_ += fmt::format(
          "<line class=\"leader\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          x + (to_x - x) * radius / away, y + (to_y - y) * radius / away, to_x, to_y);
    }
    Text(box->left + 2, box->bottom - 4, point.above_roof ? "name bad" : "name", text);
  }
}

void RooflinePicture::DrawEmpty() {
  Text((kLeft + kRight) / 2, (kTop + kBottom) / 2, "dim middle name",
       "no point: nothing has FLOPs, bytes and a time");
}

std::string DrawRooflineSvg(const RooflineChart& chart) { return RooflinePicture(chart).Draw(); }

}  // namespace ranktap::collector
