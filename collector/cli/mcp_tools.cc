#include "collector/cli/mcp_tools.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "collector/file/json.h"
#include "collector/file/printable.h"
#include "collector/file/read_run_info.h"
#include "collector/launch/run_and_wait.h"
#include "collector/report/report.h"
#include "collector/report/text/table_text.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kMostToolMs = 60'000, kMostSqlMs = 20'000;
constexpr size_t kMostToolBytes = size_t{64} << 20;
constexpr size_t kMostSqlRows = 1000;

struct ToolParameter {
  const char* name;
  const char* type;  // "string", or "list" of strings
  const char* description;
  bool required = true;
};

struct McpTool {
  const char* name;
  const char* description;
  std::vector<ToolParameter> parameters;
};

constexpr ToolParameter kRunParameter = {"run", "string", "a name that list_runs gave"};
constexpr ToolParameter kCursorParameter = {
    "cursor", "string", "\"more\" of the answer before, for what follows it", false};

const std::vector<McpTool>& AllTools() {
  static const std::vector<McpTool> kTools = {
      {"list_runs", "The runs in the folder.", {kCursorParameter}},
      {"verdict",
       "What a run loses most of its time to, in one sentence and a table.",
       {kRunParameter, kCursorParameter}},
      {"insights",
       "Every finding about a run: id, severity, rank, steps, line, cost, advice, and the command "
       "that shows more.",
       {kRunParameter, kCursorParameter}},
      {"report",
       "One report of a run, as rows. An unknown name is answered with the names that there are.",
       {kRunParameter,
        {"name", "string", "as steps, kernels, ops, modules, stragglers, hang, memory"},
        {"where", "list", "filters, as 'total_ns > 10ms' or 'name ~ gemm'", false},
        {"columns", "string", "the columns, separated by commas", false},
        {"sort", "string", "the column to sort by, the largest first", false},
        kCursorParameter}},
      {"diff",
       "Whether runs are worse than others by more than a limit: regression, no regression or "
       "cannot tell.",
       {{"base", "list", "the runs before"},
        {"runs", "list", "the runs after"},
        {"fail_if", "list", "limits, as 'step>3%'", false},
        kCursorParameter}},
      {"sql",
       "One SELECT to a run's tables in DuckDB's SQL, as SHOW TABLES. At most 1,000 rows and 20 s.",
       {kRunParameter, {"query", "string", "the query"}, kCursorParameter}},
      {"stacks",
       "Where the Python threads of a job on this machine are now.",
       {{"target", "string", "a process number, or a job's or run's name"}, kCursorParameter}},
  };
  return kTools;
}

Words ListIn(const Json& arguments, const char* name) {
  Words words;
  if (!arguments.contains(name)) return words;
  if (arguments[name].is_string()) return {arguments[name].get<std::string>()};
  for (const Json& word : arguments[name]) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

// The parameters that the tool wants are there, with their types.
std::optional<std::string> WrongArguments(const McpTool& tool, const Json& arguments) {
  for (const ToolParameter& parameter : tool.parameters) {
    if (!arguments.contains(parameter.name)) {
      if (parameter.required) return fmt::format("{} is missing", parameter.name);
      continue;
    }
    const bool is_list = std::string_view(parameter.type) == "list";
    if (!arguments[parameter.name].is_string() &&
        !(is_list && arguments[parameter.name].is_array())) {
      return fmt::format("{} is not a {}", parameter.name, parameter.type);
    }
  }
  return std::nullopt;
}

bool IsInside(const fs::path& root, const fs::path& path) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// The path of a run that list_runs may have named: below the root, links followed.
Result<std::string> RunAt(const std::string& root, const std::string& name) {
  std::error_code error;
  const fs::path canonical_root = fs::canonical(root, error);
  const fs::path path = error ? fs::path() : fs::canonical(canonical_root / name, error);
  if (error || name.empty() || !IsInside(canonical_root, path)) {
    return Failure{fmt::format("no run {} in this folder; list_runs names them", Printable(name))};
  }
  return path.string();
}

bool IsTraceName(std::string_view name) {
  constexpr std::string_view kEndings[] = {".trace", ".json.gz", ".sqlite", ".et"};
  return std::ranges::any_of(kEndings, [name](auto ending) { return name.ends_with(ending); });
}

bool HoldsARun(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == "run.json" || IsTraceName(name)) return true;
  }
  return false;
}

Json ListRuns(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  if (HoldsARun(root)) names.emplace_back(".");
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (at->is_directory(ignored) ? HoldsARun(at->path()) : IsTraceName(name)) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  Json rows = Json::array();
  for (const std::string& name : names) {
    Json row = {{"run", name}};
    const Result<RunInfo> info = ReadRunInfo((fs::path(root) / name).string());
    if (info && !info->command.empty()) {
      std::string command;
      for (const std::string& word : info->command) command += (command.empty() ? "" : " ") + word;
      row["command"] = command;
      row["ranks"] = info->traces.size();
    }
    rows.push_back(std::move(row));
  }
  return {{"schema", kTableSchema},
          {"name", "runs"},
          {"title", "The runs in the folder"},
          {"rows", std::move(rows)},
          {"notes", Json::array()}};
}

std::string ShortText(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

void CutTexts(size_t most, Json* value) {
  if (value->is_string()) *value = ShortText(value->get<std::string>(), most);
  if (!value->is_array() && !value->is_object()) return;
  for (Json& member : *value) CutTexts(most, &member);
}

// Nobody loses what is null.
Json WithoutNulls(const Json& row) {
  Json filled = Json::object();
  for (const auto& [name, value] : row.items()) {
    if (!value.is_null()) filled[name] = value;
  }
  return filled;
}

// Rows from `first` on, as many as fit, at least one: its texts are cut until it does.
std::string PageOf(const Json& table, size_t first) {
  const Json& rows = table["rows"];
  Json page = {{"schema", table.value("schema", std::string(kTableSchema))},
               {"name", table.value("name", "")},
               {"title", ""},
               {"all_rows", rows.size()},
               {"rows", Json::array()}};
  constexpr size_t kForCursor = 24;
  // The first page has the whole of a long sentence; a text of quotes takes twice its length.
  for (const size_t most : {1200, 500, 160}) {
    page["title"] = ShortText(table.value("title", ""), first == 0 ? most : 160);
    if (WriteJson(page).size() <= kMostAnswerBytes * 3 / 4) break;
  }
  size_t next = first;
  for (; next < rows.size(); ++next) {
    Json row = rows[next].is_object() ? WithoutNulls(rows[next]) : rows[next];
    page["rows"].push_back(row);
    for (const size_t most : {400, 160, 60, 20, 4}) {
      if (page["rows"].size() > 1 || WriteJson(page).size() + kForCursor <= kMostAnswerBytes) break;
      CutTexts(most, &page["rows"][0]);
    }
    if (WriteJson(page).size() + kForCursor <= kMostAnswerBytes) continue;
    if (page["rows"].size() > 1) {
      page["rows"].resize(page["rows"].size() - 1);
    } else {
      page["rows"][0] = "too long";
      ++next;
    }
    break;
  }
  if (next < rows.size()) {
    page["more"] = fmt::format("{}", next);
  } else if (table.contains("notes")) {
    page["notes"] = Json::array();
    for (const Json& note : table["notes"]) {
      page["notes"].push_back(note);
      if (WriteJson(page).size() <= kMostAnswerBytes) continue;
      page["notes"].resize(page["notes"].size() - 1);
      break;
    }
  }
  return WriteJson(page);
}

// What the verb printed, as a table; SQL's answer is a list of rows.
Result<Json> AsTable(const std::string& text, const std::string& name) {
  Json value = ParseJson(text, JsonOrder::kAsAdded);
  if (value.is_array()) {
    if (value.size() > kMostSqlRows) value.resize(kMostSqlRows);
    return Json{{"schema", kTableSchema},
                {"name", name},
                {"title", ""},
                {"rows", std::move(value)},
                {"notes", Json::array()}};
  }
  if (!value.is_object() || !value.contains("rows") || !value["rows"].is_array()) {
    return Failure{"the answer is no table"};
  }
  return value;
}

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// DuckDB's files are the run's tables alone; no statement but a question may reach it.
bool IsQuestion(std::string_view query) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  constexpr std::string_view kVerbs[] = {"select", "with", "from", "show", "describe", "summarize"};
  query.remove_prefix(std::min(query.find_first_not_of(kSpace), query.size()));
  std::string verb;
  for (const char c : query) {
    if (!IsAlphanumeric(c) && c != '_') break;
    verb += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const size_t semicolon = query.find(';');
  return std::ranges::find(kVerbs, verb) != std::end(kVerbs) &&
         (semicolon == query.npos || query.find_first_not_of(kSpace, semicolon + 1) == query.npos);
}

bool IsTarget(std::string_view target) {
  return !target.empty() && IsAlphanumeric(target[0]) && std::ranges::all_of(target, [](char c) {
    return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

McpTools::McpTools(std::string root) : root_(std::move(root)) {
  std::error_code error;
  self_ = fs::read_symlink("/proc/self/exe", error).string();
}

Json McpTools::List() {
  Json tools = Json::array();
  for (const McpTool& tool : AllTools()) {
    Json properties = Json::object(), required = Json::array();
    for (const ToolParameter& parameter : tool.parameters) {
      Json property = {{"type", "string"}, {"description", parameter.description}};
      if (std::string_view(parameter.type) == "list") {
        property["type"] = "array";
        property["items"] = {{"type", "string"}};
      }
      properties[parameter.name] = std::move(property);
      if (parameter.required) required.push_back(parameter.name);
    }
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"inputSchema",
                      {{"type", "object"},
                       {"properties", std::move(properties)},
                       {"required", std::move(required)}}},
                     {"annotations", {{"readOnlyHint", true}}}});
  }
  return tools;
}

Result<std::string> McpTools::Call(const std::string& name, const Json& arguments) const {
  const auto tool = std::ranges::find(AllTools(), name, &McpTool::name);
  if (tool == AllTools().end()) return Failure{fmt::format("no tool {}", Printable(name))};
  if (const auto wrong = WrongArguments(*tool, arguments)) return Failure{*wrong};
  size_t first = 0;
  const std::string cursor = arguments.TextOf("cursor");
  if (!cursor.empty()) {
    const auto [end, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), first);
    if (error != std::errc() || end != cursor.data() + cursor.size()) {
      return Failure{"the cursor is none that an answer gave"};
    }
  }
  if (name == "list_runs") return PageOf(ListRuns(root_), first);

  // Words of the program that asks stand behind "=", or are paths that are there: none is an
  // option.
  Words command = {self_};
  std::string run;
  if (arguments.contains("run")) {
    Result<std::string> path = RunAt(root_, arguments.TextOf("run"));
    if (!path) return Failure{path.message()};
    run = *path;
  }
  if (name == "verdict") command.insert(command.end(), {"report", run, "verdict"});
  if (name == "insights") command.insert(command.end(), {"report", run, "findings"});
  if (name == "report") {
    const Report* const report = FindReport(arguments.TextOf("name"));
    if (report == nullptr || report->compare != nullptr) {
      std::string names;
      for (const Report& known : AllReports()) names += std::string(known.name) + " ";
      return Failure{fmt::format("no such report; there are {}", names)};
    }
    command.insert(command.end(), {"report", run, std::string(report->name)});
    for (const std::string& where : ListIn(arguments, "where")) {
      command.push_back("--where=" + where);
    }
    for (const auto& [member, option] : {std::pair("columns", "--columns="), {"sort", "--sort="}}) {
      const std::string text = arguments.TextOf(member);
      if (!text.empty()) command.push_back(option + text);
    }
  }
  if (name == "diff") {
    command.emplace_back("diff");
    for (const std::string& limit : ListIn(arguments, "fail_if")) {
      command.push_back("--fail-if=" + limit);
    }
    for (const char* const side : {"base", "runs"}) {
      if (std::string_view(side) == "runs") command.emplace_back("--");
      for (const std::string& word : ListIn(arguments, side)) {
        Result<std::string> path = RunAt(root_, word);
        if (!path) return Failure{path.message()};
        command.push_back(*path);
      }
    }
    command.insert(command.begin() + 2, "--format=json");
  }
  if (name == "sql") {
    const std::string query = arguments.TextOf("query");
    if (!IsQuestion(query)) return Failure{"a query is one SELECT, WITH, FROM, SHOW or DESCRIBE"};
    command.insert(command.end(), {"sql", run, query});
  }
  if (name == "stacks") {
    const std::string target = arguments.TextOf("target");
    if (!IsTarget(target)) {
      return Failure{"a target is a process number, or a job's or run's name"};
    }
    command.insert(command.end(), {"stacks", target});
  }
  if (name != "diff") command.emplace_back("--format=json");
  const Result<ProgramOutput> done =
      RunAndRead(command, name == "sql" ? kMostSqlMs : kMostToolMs, kMostToolBytes);
  if (!done) return Failure{done.message()};
  const bool is_answer =
      done->status == kSuccess ||
      (name == "diff" && (done->status == kRegression || done->status == kCannotTell));
  if (!is_answer) return Failure{ShortText(Printable(done->complaints), kMostAnswerBytes / 2)};
  const Result<Json> table = AsTable(done->output, name);
  if (!table) return Failure{table.message()};
  return PageOf(*table, first);
}

}  // namespace ranktap::collector
