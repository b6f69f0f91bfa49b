#include "collector/report/page/page.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "collector/file/json.h"
#include "collector/report/page/page_assets.h"
#include "collector/report/page/page_pictures.h"
#include "collector/report/page/page_tables.h"
#include "collector/report/report.h"
#include "collector/trace/at_once.h"

namespace ranktap::collector {
namespace {

// No address can be fetched, no form sent, no other page framed.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'";

Json DescribeTraces(const Run& run) {
  Json traces = Json::array();
  for (const Trace& trace : run.traces) {
    const TraceInfo& info = trace.info;
    traces.push_back({{"file", info.file},
                      {"rank", info.rank},
                      {"host", info.host},
                      {"executable", info.executable},
                      {"loaded_by", info.loaded_by},
                      {"level", info.level},
                      {"detail", info.detail},
                      {"notes", info.notes},
                      {"ours", trace.is_ours()},
                      {"simulated", info.simulated}});
  }
  return traces;
}

Json DescribeRun(const Run& run) {
  const RunInfo& info = run.info;
  bool simulated = false;
  for (const Trace& trace : run.traces) simulated |= trace.info.simulated;
  return {{"path", run.path},
          {"command", info.command},
          {"metadata", info.metadata},
          {"host", info.host},
          {"version", info.collector_version},
          {"level", info.level},
          {"start_realtime_ns", info.start_realtime_ns},
          {"end_realtime_ns", info.end_realtime_ns},
          {"exit_status", info.exit_status},
          {"exit_signal", info.exit_signal},
          {"refused", info.refused},
          {"problems", run.problems},
          {"simulated", simulated},
          {"traces", DescribeTraces(run)}};
}

Json ToJson(const PageFlames& flames) {
  Json stacks = Json::array();
  for (const PageFlames::Stack& stack : flames.stacks) {
    Json weights = Json::array();
    for (const int64_t weight : stack.weights) weights.push_back(weight);
    stacks.push_back(Json::array({stack.frames, std::move(weights)}));
  }
  return {{"frames", flames.frames}, {"stacks", std::move(stacks)}};
}

// {name: short} of names that are longer than a table's column.
Json ShortNames(const Json& tables, const ShortenNames& shorten) {
  std::set<std::string> longer;
  for (const Json& table : tables) {
    for (const Json& column : table["columns"]) {
      const bool has_names =
          column["name"] == "name" || column["name"] == "operator" || column["name"] == "kernel";
      if (!has_names || !column.contains("values")) continue;
      for (const Json& name : column["values"]) {
        if (name.is_string() && name.text().size() > 60) longer.insert(name.text());
      }
    }
  }
  Json names = Json::object();
  if (!shorten) return names;
  const std::vector<std::string> given(longer.begin(), longer.end());
  const std::vector<std::string> cut = shorten(given);
  for (size_t i = 0; i < given.size(); ++i) names[given[i]] = cut[i];
  return names;
}

// No "</script>" and no "<!--" can be in it.
std::string Embedded(const Json& data) {
  const std::string text = WriteJson(data, -1, JsonOrder::kByName);
  std::string safe;
  safe.reserve(text.size());
  for (const char byte : text) {
    if (byte == '<') {
      safe += "\\u003c";
    } else {
      safe += byte;
    }
  }
  return safe;
}

std::string Assemble(const Json& data) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
      "content=\"ranktap\">\n<title>ranktap</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<noscript>This page draws itself: allow its scripts. They can reach no "
      "network.</noscript>\n",
      kPolicy, PageStyle());
  page += "<script type=\"application/json\" id=\"data\">";
  page += Embedded(data);
  page += "</script>\n<script>\n/*\n";
  page += D3Licence();
  page += "*/\n";
  page += D3Script();
  page += "</script>\n<script type=\"module\">\n";
  page += PageScript();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace

std::string FormatPage(const Run& run, const PageContent& content) {
  const std::vector<std::string> inputs =
      content.inputs.empty() ? std::vector{run.path} : content.inputs;
  Json tables = PageTables(run, content.options, inputs);
  Json short_names = ShortNames(tables, content.shorten);
  Json page = {{"kind", "run"},
               {"run", DescribeRun(run)},
               {"place", content.place},
               {"inputs", inputs},
               {"short_names", std::move(short_names)},
               {"notes", content.notes},
               {"links", {{"runs", content.runs_link}, {"perfetto", content.perfetto_link}}},
               {"tables", std::move(tables)},
               {"flames", ToJson(content.flames)}};
  using Picture = std::pair<const char*, Json (*)(const Run&)>;
  static constexpr Picture kPictures[] = {
      {"lanes", &PageLanes}, {"names", &PageNames}, {"steps", &PageSteps}, {"times", &PageTimes}};
  MakeAtOnce(
      std::size(kPictures), [&](size_t i) { return kPictures[i].second(run); },
      [&](size_t i, Json picture) {
        page[kPictures[i].first] = std::move(picture);
        return true;
      });
  return Assemble(page);
}

std::string FormatDiffPage(const Run& before, const Run& after,
                           const std::vector<std::string>& notes, const ShortenNames& shorten) {
  const auto of_run = [](const Run& run) {
    Json tables = Json::object();
    for (const std::string_view name : {"key-figures", "waterfall", "verdict"}) {
      tables[std::string(name)] = PageTable((*FindReport(name))(run));
    }
    return Json{{"run", DescribeRun(run)}, {"tables", std::move(tables)}};
  };
  Json tables = {{"diff", PageTable((*FindReport("diff"))(before, after))}};
  Json short_names = ShortNames(tables, shorten);
  return Assemble({{"kind", "diff"},
                   {"notes", notes},
                   {"short_names", std::move(short_names)},
                   {"tables", std::move(tables)},
                   {"before", of_run(before)},
                   {"after", of_run(after)}});
}

}  // namespace ranktap::collector
