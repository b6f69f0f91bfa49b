// Colours and sizes of a roofline's picture, and how its numbers read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/export/roofline/roofline_chart.h"

namespace ranktap::collector {

// In the picture's units: the frame, text, and the radii of points.
inline constexpr double kWidth = 960, kLeft = 84, kRight = 936, kTop = 48, kBottom = 508;
inline constexpr double kFont = 12;
inline constexpr double kLineHeight = 15;
inline constexpr double kSmallest = 3, kSmallestAbove = 7, kLargest = 26;  // radii
inline constexpr double kLevelMark = 7;

// Colours are of Okabe and Ito, which those who see no red or no green tell apart; in dark as light
// as the others are dark.
inline constexpr size_t kTypeColors = 8;
inline constexpr std::string_view kRooflineStyle =
    ":root{--paper:#ffffff;--ink:#1b1f24;--dim:#57606a;--grid:#ccd3da;--minor:#eceff2;"
    "--bad:#cf222e;--t0:#0072b2;--t1:#d55e00;--t2:#008c66;--t3:#b0408a;--t4:#8a6d00;--t5:#2f7fb8;"
    "--t6:#5b4bb5;--t7:#57606a}"
    "@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--dim:#9aa4af;"
    "--grid:#3a424c;--minor:#1b2129;--bad:#ff7b72;--t0:#58a6e6;--t1:#ff9a4d;--t2:#3ddbaa;"
    "--t3:#f08bc6;--t4:#e0c341;--t5:#8fd0ff;--t6:#b3a6ff;--t7:#9aa4af}}"
    ".t0{--c:var(--t0)}.t1{--c:var(--t1)}.t2{--c:var(--t2)}.t3{--c:var(--t3)}.t4{--c:var(--t4)}"
    ".t5{--c:var(--t5)}.t6{--c:var(--t6)}.t7{--c:var(--t7)}";

// Which colour each type has, by its first ceiling or point.
class TypeColors {
 public:
  explicit TypeColors(const RooflineChart& chart);
  const std::vector<std::string>& types() const { return types_; }
  std::string ClassOf(const std::string& type) const;  // "t3"; "t7" for no type

 private:
  std::vector<std::string> types_;
};

// A mark around (x, y): a circle, of "L1" a triangle, of "L2" a square, of "memory" a diamond.
std::string MarkOfLevel(std::string_view level, std::string_view style, double x, double y,
                        double radius);
std::string PointFlops(double flops);       // "12.3 TFLOP/s"
std::string PointTime(int64_t ns);          // "9.12 ms"
std::string PointTitle(const ChartPoint&);  // lines, as markup
// At most this many characters, with dots for those in the middle, which names have in common
// least.
std::string Shortened(const std::string& text, size_t most);

}  // namespace ranktap::collector
