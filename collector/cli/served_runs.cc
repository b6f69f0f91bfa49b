#include "collector/cli/served_runs.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "collector/cli/compared_runs.h"
#include "collector/cli/page.h"
#include "collector/export/exporters.h"
#include "collector/file/json.h"
#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "collector/file/read_run_info.h"
#include "collector/import/open_run.h"
#include "collector/report/report.h"
#include "collector/report/text/cell_text.h"

namespace ranktap::collector {
namespace {

// The page that hands a trace to Perfetto fetches it from us, and the list what each run says.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'";
constexpr std::string_view kHead = R"(<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
:root { --bg: #f4f5f7; --card: #fff; --text: #1b2430; --muted: #5d6b7a; --line: #dfe4ea; --accent: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --bg: #11161d; --card: #1a212b; --text: #e4e9ef; --muted: #98a6b5; --line: #303b49; --accent: #7db8f0; } }
body { margin: 0; background: var(--bg); color: var(--text); font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
main { max-width: 1000px; margin: 32px auto; padding: 0 20px; }
h1 { font-size: 20px; margin: 0 0 4px; } p { color: var(--muted); margin: 4px 0 16px; overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
li { padding: 12px 18px; border-top: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: 2px 18px; align-items: baseline; }
li:first-child { border-top: 0; } li b { min-width: 180px; } li .step { flex: none; color: var(--text); }
li p { flex: 1 1 100%; margin: 0 0 0 30px; } #compare { margin-top: 14px; } #compare[hidden] { display: none; } li span { color: var(--muted); flex: 1 1 260px; overflow-wrap: anywhere; }
li i { font-style: normal; color: var(--accent); border: 1px solid; border-radius: 9px; padding: 0 8px; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
button { font: inherit; padding: 6px 16px; border-radius: 6px; border: 1px solid var(--accent); background: var(--accent); color: var(--card); cursor: pointer; }
</style>
)";
// Perfetto's way to be given a trace: ask until it answers, then send it.
constexpr std::string_view kPerfettoPage = R"(<title>Perfetto · ranktap</title><main>
<h1>Open in Perfetto</h1><p>This opens ui.perfetto.dev in a new window and hands it the trace there, in your browser. The site
does not upload it. Without a network, download the file instead.</p>
<p><button id="open" type="button">Open in Perfetto</button> &nbsp; <a href="trace" download="ranktap.pftrace">download the trace</a></p>
<p id="state" role="status"></p></main><script>
'use strict';
const ORIGIN = 'https://ui.perfetto.dev';
const say = (text) => { document.getElementById('state').textContent = text; };
document.getElementById('open').addEventListener('click', async () => {
  const target = window.open(ORIGIN);
  if (!target) { say('The browser has blocked the new window.'); return; }
  say('Writing the trace…');
  const answer = await fetch('trace');
  if (!answer.ok) { say(await answer.text()); return; }
  const buffer = await answer.arrayBuffer();
  say('Waiting for Perfetto…');
  const asking = setInterval(() => target.postMessage('PING', ORIGIN), 50);
  window.addEventListener('message', (event) => {
    if (event.origin !== ORIGIN || event.source !== target || event.data !== 'PONG' || buffer.byteLength === 0) return;
    clearInterval(asking);
    target.postMessage({perfetto: {buffer, title: document.title, fileName: 'ranktap.pftrace'}}, ORIGIN, [buffer]);
    say('Perfetto has the trace.');
  });
});
</script>
)";

// One run after the other: each is opened for it.
constexpr std::string_view kListScript =
    R"(<button id="compare" type="button" hidden>compare the two</button>
</main><script>
'use strict';
const rows = [...document.querySelectorAll('li[data-run]')];
const compare = document.getElementById('compare');
const picked = () => rows.filter((row) => row.querySelector('input').checked).map((row) => row.dataset.run);
for (const row of rows) row.querySelector('input').addEventListener('change', () => { compare.hidden = picked().length !== 2; });
compare.addEventListener('click', () => { location.href = `compare/${picked().join('/')}/`; });
const tell = async () => {
  for (const row of rows) {
    const answer = await fetch(`run/${row.dataset.run}/summary`);
    if (!answer.ok) continue;
    const said = await answer.json();
    row.querySelector('.step').textContent = said.step;
    row.querySelector('p').textContent = said.verdict;
  }
};
tell();
</script>
)";

std::string HtmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char byte : Printable(std::string(text))) {
    if (byte == '<' || byte == '>' || byte == '&' || byte == '"') {
      escaped += fmt::format("&#{};", static_cast<int>(byte));
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

HttpResponse Sentence(int status, const std::string& text) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = text + "\n"};
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* const entry = ::readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool IsTrace(std::string_view name) {
  constexpr std::string_view kEndings[] = {".trace", ".json", ".json.gz", ".sqlite", ".et"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

std::string Describe(const Result<RunInfo>& read) {
  if (!read) return read.message();
  const RunInfo& info = *read;
  if (info.start_realtime_ns == 0) return "files of another tool";
  const auto seconds = static_cast<time_t>(info.start_realtime_ns / 1'000'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::string command;
  for (const std::string& word : info.command) command += (command.empty() ? "" : " ") + word;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC · {} {} · {}", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, info.traces.size(),
                     info.traces.size() == 1 ? "rank" : "ranks", command);
}

std::string TagsOf(const Result<RunInfo>& info,
                   const std::map<std::string, std::vector<std::string>>& tags) {
  const auto found = info ? tags.find(info->run) : tags.end();
  if (found == tags.end()) return "";
  std::string text;
  for (const std::string& name : found->second) {
    text += fmt::format("<i title=\"in the baseline {0}\">{0}</i>", HtmlEscaped(name));
  }
  return text;
}

bool IsRun(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (!S_ISDIR(status.st_mode)) return true;
  const std::vector<std::string> names = NamesIn(path);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == "run.json" || IsTrace(name); });
}

// Files of other tools that are not the ranks of one job, as far as their names say.
bool HoldsUnrelatedFiles(const std::string& path) {
  std::set<uint32_t> ranks;
  size_t files = 0;
  for (const std::string& name : NamesIn(path)) {
    if (name == "run.json" || name.ends_with(".trace")) return false;
    if (!IsTrace(name)) continue;
    ++files;
    if (const auto rank = RankInName(name)) ranks.insert(*rank);
  }
  return files > 1 && ranks.size() != files;
}

}  // namespace

ServedRuns::ServedRuns(std::string root, const std::string& baselines, std::string secret)
    : secret_(std::move(secret)) {
  // "." has no name, and "run/./" is "run/" to a browser.
  std::error_code error;
  root_ = std::filesystem::canonical(root, error).string();
  if (error) root_ = std::move(root);
  for (const std::string& folder : {baselines, root_ + "/" + kBaselinesFolder}) {
    const std::string path = std::filesystem::canonical(folder, error).string();
    if (!error) baselines_.insert(path);
  }
  lists_files_ = HoldsUnrelatedFiles(root_);
  is_run_ = !lists_files_ && IsRun(root_);
}

std::vector<ServedRuns::Entry> ServedRuns::Runs() const {
  if (is_run_) return {{root_.substr(root_.rfind('/') + 1), root_}};
  std::vector<Entry> runs;
  for (const std::string& name : NamesIn(root_)) {
    struct stat status {};
    const std::string path = root_ + "/" + name;
    const bool is_folder = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    const bool is_file = lists_files_ && IsTrace(name);
    if (baselines_.contains(path)) continue;
    if (is_file || (is_folder && IsRun(path))) runs.push_back({name, path});
  }
  return runs;
}

std::map<std::string, std::vector<std::string>> ServedRuns::Tags() const {
  std::map<std::string, std::vector<std::string>> tags;
  for (const std::string& folder : baselines_) {
    std::error_code error;
    for (const auto& [name, baseline] : BaselinesIn(folder, &error)) {
      for (const RunFigures& run : baseline.runs) {
        if (!run.id.empty()) tags[run.id].push_back(name);
      }
    }
  }
  return tags;
}

HttpResponse ServedRuns::List() const {
  const std::vector<Entry> runs = Runs();
  const std::map<std::string, std::vector<std::string>> tags = Tags();
  std::string body(kHead);
  body += fmt::format("<title>runs · ranktap</title><main><h1>Runs</h1><p>{}</p><ul>",
                      HtmlEscaped(root_));
  for (const Entry& run : runs) {
    const std::string link = PercentEncoded(run.name);
    const Result<RunInfo> info = ReadRunInfo(run.path);
    // Its command loaded nothing that is traced.
    const bool is_empty = info && info->start_realtime_ns != 0 && info->traces.empty();
    body += fmt::format(
        "<li data-run=\"{0}\"><input type=\"checkbox\" aria-label=\"compare {1}\"><b>"
        "<a href=\"run/{0}/\">{1}</a></b>{2}<span class=\"step\"></span><span>{3}</span>",
        link, HtmlEscaped(run.name), TagsOf(info, tags),
        HtmlEscaped(lists_files_ ? "" : Describe(info)));
    if (!is_empty) {
      body += fmt::format("<a href=\"run/{}/perfetto\">open in Perfetto</a>", link);
    }
    body += "<p></p></li>";
  }
  if (runs.empty()) body += "<li>No run is here. ranktap run -o DIR/NAME makes one.</li>";
  return {.body = body + "</ul>" + std::string(kListScript), .policy = std::string(kPolicy)};
}

HttpResponse ServedRuns::Page(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  Result<Run> run = OpenRun({entry.path});
  if (!run) return Sentence(500, run.message());
  return {.body = MakePage({}, {}, {}, {entry.path}, &*run,
                           {.runs = is_run_ ? "" : "../../", .perfetto = "perfetto"})};
}

HttpResponse ServedRuns::Summary(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  const Result<Run> run = OpenRun({entry.path});
  if (!run) return Sentence(500, run.message());
  const Table figures = (*FindReport("key-figures"))(*run);
  std::string step;
  for (size_t c = 0; c < figures.columns.size() && !figures.rows.empty(); ++c) {
    if (figures.columns[c].name != "step_median_ns") continue;
    const std::string time = FormatCell(figures.rows[0][c], figures.columns[c].unit);
    if (time != "-") step = time + " a step";
  }
  const Json said = {{"step", step}, {"verdict", (*FindReport("verdict"))(*run).title}};
  return {.type = "application/json", .body = WriteJson(said, -1, JsonOrder::kByName)};
}

// "A/B/"
HttpResponse ServedRuns::Compare(std::string_view names) {
  const size_t slash = names.find('/');
  if (slash == names.npos || !names.ends_with('/') || slash + 1 == names.size()) {
    return Sentence(404, "not here");
  }
  const auto before = Named(names.substr(0, slash));
  const auto after = Named(names.substr(slash + 1, names.size() - slash - 2));
  if (!before || !after) return Sentence(404, "no run of this name");
  const std::lock_guard lock(mutex_);
  Result<Run> first = OpenRun({before->path});
  Result<Run> second = OpenRun({after->path});
  if (!first || !second) return Sentence(500, first ? second.message() : first.message());
  return {.body = MakeDiffPage(*first, *second, {})};
}

HttpResponse ServedRuns::Trace(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  Result<Run> run = OpenRun({entry.path});
  if (!run) return Sentence(500, run.message());
  std::string folder = "/tmp/ranktap-serve-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return Sentence(500, "no room in /tmp");
  const std::string path = folder + "/trace.pftrace";
  std::vector<const collector::Trace*> traces;
  for (const collector::Trace& trace : run->traces) traces.push_back(&trace);
  const std::optional<Failure> failure = WritePerfetto(*run, traces, {}, path);
  HttpResponse response = failure ? Sentence(500, failure->message) : HttpResponse{};
  if (!failure) {
    response.type = "application/octet-stream";
    if (Result<FileDescriptor> file = OpenRegularFile(path)) response.file = std::move(*file);
  }
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
  return response;
}

std::optional<ServedRuns::Entry> ServedRuns::Named(std::string_view name) const {
  for (Entry& run : Runs()) {
    if (run.name == name) return std::move(run);
  }
  return std::nullopt;
}

HttpResponse ServedRuns::OfRun(std::string_view name_and_rest) {
  const size_t slash = name_and_rest.find('/');
  if (slash == name_and_rest.npos) return Sentence(404, "not here");
  const std::string_view rest = name_and_rest.substr(slash + 1);
  const auto entry = Named(name_and_rest.substr(0, slash));
  if (!entry) return Sentence(404, "no run of this name");
  if (rest.empty()) return Page(*entry);
  if (rest == "trace") return Trace(*entry);
  if (rest == "summary") return Summary(*entry);
  if (rest != "perfetto") return Sentence(404, "not here");
  return {.body = std::string(kHead) + std::string(kPerfettoPage), .policy = std::string(kPolicy)};
}

HttpResponse ServedRuns::Answer(const HttpRequest& request) {
  const std::string prefix = "/" + secret_ + "/";
  if (!request.path.starts_with(prefix)) return Sentence(404, "not here");
  const std::string_view path = std::string_view(request.path).substr(prefix.size());
  if (path.empty() && is_run_) {
    return {.status = 303,
            .body = "",
            .location = prefix + "run/" + PercentEncoded(Runs().front().name) + "/"};
  }
  if (path.empty()) return List();
  if (path.starts_with("compare/")) return Compare(path.substr(8));
  return path.starts_with("run/") ? OfRun(path.substr(4)) : Sentence(404, "not here");
}

}  // namespace ranktap::collector
