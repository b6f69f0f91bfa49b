// The picture with its table, in a page that loads nothing.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "collector/export/roofline/log_axis.h"
#include "collector/export/roofline/roofline_chart.h"
#include "collector/export/roofline/roofline_style.h"
#include "collector/file/markup_text.h"

namespace ranktap::collector {
namespace {

// The picture keeps a width at which its text can be read, and scrolls by itself where the window
// is narrower.
constexpr std::string_view kPageStyle =
    "body{margin:1.5em;background:var(--paper);color:var(--ink);"
    "font:14px system-ui,'DejaVu Sans',sans-serif}"
    "section{overflow-x:auto;max-width:90em}svg{display:block;width:100%;min-width:46em;"
    "height:auto}"
    "table{border-collapse:collapse;margin-top:1em}th,td{padding:.25em .8em;text-align:right;"
    "border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}"
    "th{vertical-align:bottom}.text{text-align:left}"
    "td.name{white-space:normal;overflow-wrap:anywhere;min-width:20em;max-width:30em}"
    "tr.above td{color:var(--bad)}i{display:inline-block;width:.7em;height:.7em;border-radius:50%;"
    "background:var(--c);margin-right:.4em}@media (max-width:40em){body{margin:.5em}}";

constexpr std::array<std::string_view, 11> kHeadings = {"point",
                                                        "type",
                                                        "rank",
                                                        "time",
                                                        "share",
                                                        "FLOP/B",
                                                        "attained",
                                                        "B/s",
                                                        "roof",
                                                        "% of its roof",
                                                        "saved at its roof"};

std::string Cell(std::string_view style, std::string_view content) {
  return fmt::format("<td{}>{}</td>", style.empty() ? "" : fmt::format(" class=\"{}\"", style),
                     content);
}

std::string Percent(double percent) { return fmt::format("{:.1f} %", percent); }

std::string Row(const ChartPoint& point, int64_t whole_ns, const TypeColors& colors) {
  const bool on_axes = point.attained > 0;
  std::string row = point.above_roof ? "<tr class=\"above\">" : "<tr>";
  row += Cell("text name", MarkupText(point.label) + (point.above_roof ? " (above its roof)" : "") +
                               (point.at_best ? " (at best)" : "") +
                               (point.level.empty() ? "" : " (" + point.level + ", counters)"));
  row += Cell("text", point.type.empty()
                          ? ""
                          : fmt::format("<i class=\"{}\"></i>{}", colors.ClassOf(point.type),
                                        MarkupText(point.type)));
  row += Cell("", point.rank ? std::to_string(*point.rank) : "");
  row += Cell("", PointTime(point.time_ns));
  row += Cell(
      "", whole_ns > 0 && point.level.empty()
              ? Percent(100.0 * static_cast<double>(point.time_ns) / static_cast<double>(whole_ns))
              : "");
  row += Cell("", point.intensity > 0 ? fmt::format("{:.3g}", point.intensity) : "");
  row += Cell("", on_axes ? PointFlops(point.attained) : "");
  row += Cell("", point.bandwidth.value_or(0) > 0 ? WithPrefix(*point.bandwidth) + "B/s" : "");
  row += Cell("", point.roof ? PointFlops(*point.roof) : "");
  const bool has_share = on_axes && point.roof && *point.roof > 0;
  row += Cell("", has_share ? Percent(100 * point.attained / *point.roof) : "");
  row += Cell("", point.saved_ns ? PointTime(*point.saved_ns) : "");
  return row + Cell("text", MarkupText(point.bound)) + "</tr>\n";
}

std::string PointTable(const RooflineChart& chart) {
  std::vector<const ChartPoint*> points;
  int64_t whole_ns = 0;
  for (const ChartPoint& point : chart.points) {
    points.push_back(&point);
    if (point.level.empty()) whole_ns += point.time_ns;
  }
  std::ranges::stable_sort(
      points, [](const ChartPoint* a, const ChartPoint* b) { return a->time_ns > b->time_ns; });
  std::string table = "<section><table><tr>";
  for (size_t i = 0; i < kHeadings.size(); ++i) {
    table += fmt::format("<th{}>{}</th>", i < 2 ? " class=\"text\"" : "", kHeadings[i]);
  }
  table += "<th class=\"text\">bound</th></tr>\n";
  const TypeColors colors(chart);
  for (const ChartPoint* const point : points) table += Row(*point, whole_ns, colors);
  return table + "</table></section>\n";
}

}  // namespace

std::string DrawRooflineHtml(const RooflineChart& chart) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'\">\n<meta name=\"viewport\" "
             "content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" "
             "content=\"light dark\">\n<title>{}</title>\n<style>{}{}</style></head>\n<body>\n",
             MarkupText(chart.title), kRooflineStyle, kPageStyle) +
         "<section>" + DrawRooflineSvg(chart) + "</section>\n" + PointTable(chart) +
         "</body></html>\n";
}

}  // namespace ranktap::collector
