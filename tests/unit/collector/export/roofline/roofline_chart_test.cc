#include "collector/export/roofline/roofline_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "collector/export/roofline/label_places.h"
#include "collector/export/roofline/log_axis.h"

namespace ranktap::collector {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An H100, and products and element-wise operators as a transformer has them.
RooflineChart Chart() {
  RooflineChart chart;
  chart.title = "roofline of rank 0 on NVIDIA H100 SXM";
  chart.ceilings = {{"bf16 tensor", "bf16", false, 989.4e12},
                    {"tf32 tensor", "tf32", false, 494.7e12},
                    {"fp32", "fp32", false, 66.9e12},
                    {"HBM", "", true, 3.35e12},
                    {"L2", "", true, 5.5e12}};
  const auto add = [&](const char* name, const char* type, double intensity, double flops,
                       int64_t us, bool above = false) {
    ChartPoint& point = chart.points.emplace_back();
    point = {name, type, intensity, flops, us * 1'000, 0, above};
    point.bound = "HBM";
    point.roof = above ? flops / 3 : flops * 1.6;
    point.saved_ns = us * 400;
  };
  add("aten::mm", "bf16", 420, 610e12, 9'000);
  add("aten::addmm", "bf16", 390, 580e12, 8'500);
  add("aten::_scaled_dot_product_flash_attention", "bf16", 380, 410e12, 4'000);
  add("aten::_scaled_dot_product_flash_attention_backward", "bf16", 360, 350e12, 7'000);
  add("aten::native_layer_norm", "fp32", 1.2, 2.4e12, 1'800);
  add("aten::native_layer_norm_backward", "fp32", 1.3, 1.9e12, 2'000);
  add("aten::gelu", "bf16", 0.25, 0.5e12, 900);
  add("aten::mul", "fp32", 0.083, 0.2e12, 700);
  add("aten::add_", "fp32", 0.085, 0.21e12, 750);
  add("aten::_fused_adamw_", "fp32", 0.6, 1.5e12, 1'500);
  add("aten::_softmax", "fp32", 0.6, 1.1e12, 400);
  add("aten::bmm", "tf32", 30, 240e12, 300, true);
  return chart;
}

// Where it asks, the file can be looked at.
void Keep(const char* name, const std::string& text) {
  const char* const folder = std::getenv("RANKTAP_KEEP_PICTURES");
  if (folder != nullptr) std::ofstream(std::string(folder) + "/" + name) << text;
}

TEST(RooflineSvg, HoldsCeilingsRidgesAndPointsByTheirNames) {
  const std::string svg = DrawRooflineSvg(Chart());
  Keep("roofline.svg", svg);
  EXPECT_THAT(svg,
              AllOf(HasSubstr("bf16 tensor 989 TFLOP/s"), HasSubstr("HBM 3.35 TB/s"),
                    HasSubstr("L2 5.5 TB/s"), HasSubstr("ridge of bf16 tensor and HBM: 295 FLOP/B"),
                    HasSubstr("aten::mm\n610 TFLOP/s at 420 FLOP/B, 9 ms"),
                    HasSubstr("prefers-color-scheme:dark")));
}

TEST(RooflineSvg, RefersToNothingOutsideOfItself) {
  for (const std::string& text : {DrawRooflineSvg(Chart()), DrawRooflineHtml(Chart())}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("href")),
                            Not(HasSubstr("src=")), Not(HasSubstr("@import"))));
    // A name space is not fetched.
    EXPECT_THAT(std::regex_replace(text, std::regex("http://www.w3.org/2000/svg"), ""),
                Not(HasSubstr("http:")));
  }
  EXPECT_THAT(DrawRooflineHtml(Chart()), HasSubstr("Content-Security-Policy"));
}

TEST(RooflineSvg, APointAboveItsRoofIsHollowAndMarked) {
  RooflineChart chart = Chart();
  const std::string svg = DrawRooflineSvg(chart);
  EXPECT_THAT(svg, AllOf(HasSubstr("ABOVE ITS ROOF"), HasSubstr("class=\"above\""),
                         HasSubstr("above its roof: a wrong count, no fact")));
  chart.points.back().above_roof = false;
  EXPECT_THAT(DrawRooflineSvg(chart), Not(HasSubstr("class=\"above\"")));
}

TEST(RooflineSvg, APointThatWasNotMeasuredIsHollowAndSaysSo) {
  RooflineChart chart = Chart();
  EXPECT_THAT(DrawRooflineSvg(chart), Not(HasSubstr("at best")));
  chart.points[0].at_best = true;
  EXPECT_THAT(DrawRooflineSvg(chart),
              AllOf(HasSubstr("aten::mm\nat best: no time was measured"),
                    HasSubstr("class=\"at-best t0\""), HasSubstr("hollow: at best")));
  EXPECT_THAT(DrawRooflineHtml(chart), HasSubstr("aten::mm (at best)"));
}

TEST(RooflineSvg, AFlaggedPointFarAboveEverythingDoesNotStretchTheAxis) {
  RooflineChart chart = Chart();
  chart.points.back().attained = 1e22;
  const std::string svg = DrawRooflineSvg(chart);
  EXPECT_THAT(svg, AllOf(HasSubstr("cy=\"48.0\""), Not(HasSubstr("cy=\"-"))));
  EXPECT_THAT(svg, HasSubstr("ABOVE ITS ROOF"));
}

TEST(RooflineSvg, TheAreaOfAPointIsItsTime) {
  RooflineChart chart;
  chart.ceilings = {{"fp32", "fp32", false, 1e12}, {"HBM", "", true, 1e11}};
  chart.points = {{"a", "fp32", 1, 1e10, 400'000}, {"b", "fp32", 2, 1e9, 100'000}};
  const std::string svg = DrawRooflineSvg(chart);
  EXPECT_THAT(svg, AllOf(HasSubstr("r=\"26.0\""), HasSubstr("r=\"13.0\"")));
}

TEST(RooflineSvg, PointsWithoutAPlaceAreCountedAndNotDrawn) {
  RooflineChart chart = Chart();
  chart.points.push_back({"aten::copy_", "bf16", 0, 0, 5'000'000});
  chart.points.push_back({"aten::div", "bf16", std::nan(""), 1, 1'000'000});
  const std::string svg = DrawRooflineSvg(chart);
  EXPECT_THAT(svg, AllOf(HasSubstr("2 points of 6 ms without a place here"),
                         Not(HasSubstr("aten::copy_")), Not(HasSubstr("nan"))));
  EXPECT_THAT(DrawRooflineHtml(chart), HasSubstr("aten::copy_"));
}

TEST(RooflineSvg, ARunWithoutPointsOrPeaksSaysSo) {
  const std::string svg = DrawRooflineSvg({});
  EXPECT_THAT(svg, AllOf(HasSubstr("no point"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(RooflineSvg, NamesCannotLeaveTheirPlace) {
  RooflineChart chart = Chart();
  chart.points[0].label = "</title><script>alert('1')</script>\"&\x01";
  chart.points[0].type = "<b>";
  chart.title = "\"><x>";
  for (const std::string& text : {DrawRooflineSvg(chart), DrawRooflineHtml(chart)}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<b>")), Not(HasSubstr("<x>")),
                            Not(HasSubstr("\x01"))));
  }
}

// By their places in the text: x, y, and what they take.
std::vector<Box> LabelsOf(const std::string& svg) {
  std::vector<Box> boxes;
  const std::regex label("<text class=\"name( bad)?\" x=\"([0-9.]+)\" y=\"([0-9.]+)\">([^<]*)<");
  for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it) {
    const double x = std::stod((*it)[2]), y = std::stod((*it)[3]);
    boxes.push_back({x, y - 11, x + TextWidth((*it)[4].str(), 12), y + 3});
  }
  return boxes;
}

TEST(RooflineSvg, TheTenLargestHaveLabelsOfWhichNoneLiesOnAnother) {
  RooflineChart chart = Chart();
  // All in one place, which is the worst.
  for (ChartPoint& point : chart.points) {
    point.intensity = 100;
    point.attained = 1e14;
  }
  Keep("crowded.svg", DrawRooflineSvg(chart));
  for (const RooflineChart& one : {Chart(), chart}) {
    const std::vector<Box> boxes = LabelsOf(DrawRooflineSvg(one));
    ASSERT_EQ(boxes.size(), 10U);
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t j = 0; j < i; ++j) EXPECT_EQ(Overlap(boxes[i], boxes[j]), 0) << i << " " << j;
    }
  }
}

TEST(RooflineHtml, HasARowForEachPointTheLongestFirst) {
  const std::string html = DrawRooflineHtml(Chart());
  Keep("roofline.html", html);
  const size_t table = html.find("<table>");
  ASSERT_NE(table, std::string::npos);
  EXPECT_LT(html.find(">aten::mm<", table), html.find(">aten::addmm<", table));
  EXPECT_THAT(html.substr(table), HasSubstr("<tr class=\"above\">"));
  EXPECT_THAT(html.substr(table), HasSubstr("aten::bmm (above its roof)"));
}

TEST(LogAxis, SpansTheDecadesOfItsValuesAndLimitsThem) {
  const double values[] = {0.3, 400, -1, 0, HUGE_VAL};
  const LogAxis axis(values, 10, 0, 100);
  EXPECT_DOUBLE_EQ(axis.first(), 0.1);
  EXPECT_DOUBLE_EQ(axis.last(), 1'000);
  EXPECT_DOUBLE_EQ(axis.At(1), 25);
  EXPECT_EQ(axis.Marks().size(), 5U + 4 * 8);
  const double wide[] = {1e-9, 1e9};
  EXPECT_FALSE(LogAxis(wide, 10, 0, 1).Holds(1e-9));
}

TEST(LogAxis, NumbersHaveThreeDigitsAndAPrefix) {
  EXPECT_EQ(WithPrefix(989.4e12), "989 T");
  EXPECT_EQ(WithPrefix(999.7e9), "1 T");
  EXPECT_EQ(WithPrefix(0.01), "0.01 ");
  EXPECT_EQ(WithPrefix(0), "0 ");
}

TEST(RooflineSvg, DashesACeilingOfADataSheetBesideMeasuredOnes) {
  RooflineChart chart = Chart();
  EXPECT_THAT(DrawRooflineSvg(chart), Not(HasSubstr("stroke-dasharray=")));
  chart.ceilings[1].is_dashed = chart.ceilings[4].is_dashed = true;
  const std::string dashed = DrawRooflineSvg(chart);
  const std::regex line("<line class=\"roof [^\"]*\" stroke-dasharray=");
  EXPECT_EQ(std::distance(std::sregex_iterator(dashed.begin(), dashed.end(), line),
                          std::sregex_iterator()),
            2);
}

}  // namespace
}  // namespace ranktap::collector
