// One picture while it is drawn: the axes, then ceilings, points and labels, then what is below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/export/roofline/label_places.h"
#include "collector/export/roofline/log_axis.h"
#include "collector/export/roofline/roofline_chart.h"
#include "collector/export/roofline/roofline_style.h"

namespace ranktap::collector {

class RooflinePicture {
 public:
  explicit RooflinePicture(const RooflineChart& chart);
  std::string Draw();

 private:
  struct Item;  // of the legend

  void DrawGrid();
  void AvoidLine(double x1, double y1, double x2, double y2);
  void DrawSlopes();
  void DrawLines();
  void LabelCeilings();
  void LabelSlope(const ChartCeiling& ceiling, double from, double to);
  void LabelLine(const ChartCeiling& ceiling, double from);
  void DrawRidges();
  void DrawPoints();
  void DrawLevels();
  void LabelPoints();
  void DrawEmpty();
  double DrawLegend(double top);
  double DrawNotes(double top);

  std::string StyleOf(const ChartPoint& point) const;
  double Radius(const ChartPoint& point) const;
  double YOf(const ChartPoint& point) const;
  void Text(double x, double y, std::string_view style, std::string_view text);

  const RooflineChart& chart_;
  TypeColors colors_;
  std::vector<const ChartPoint*> points_;              // with a place, the longest first
  std::vector<const ChartCeiling*> memory_, compute_;  // the lowest first
  LogAxis x_, y_;
  LabelPlaces places_;
  int64_t longest_ns_ = 1;
  size_t placeless_ = 0;
  int64_t placeless_ns_ = 0;
  std::string out_;
};

}  // namespace ranktap::collector
