// `ranktap view RUN`: makes the page of a run and opens it.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "collector/cli/command.h"
#include "collector/cli/page.h"
#include "collector/cli/run_selection.h"
#include "collector/file/file_descriptor.h"
#include "collector/import/open_run.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/later_runs.h"
#include "collector/terminal/progress_line.h"
#include "collector/terminal/report_file.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

bool IsSet(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && *value != '\0';
}

constexpr std::string_view kFolder = "ranktap-view-";
constexpr std::chrono::hours kKept{7 * 24};

// The pages of a week ago: whoever wants to keep one names it with -o.
void RemoveOldPages(const std::string& parent) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    struct stat status {};
    if (!entry.path().filename().string().starts_with(kFolder)) continue;
    if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    const auto made = std::chrono::system_clock::from_time_t(status.st_mtime);
    if (status.st_uid != ::geteuid() || std::chrono::system_clock::now() - made < kKept) continue;
    fs::remove_all(entry.path(), error);
  }
}

// Its name ends in ".html", as browsers want it. Empty: it could not be made. A folder of our own,
// for nobody else can put a file of that name there before.
std::string MakePlace() {
  const char* const wanted = ::getenv("XDG_RUNTIME_DIR");
  std::string folder = IsSet("XDG_RUNTIME_DIR") ? wanted : "/tmp";
  RemoveOldPages(folder);
  folder += "/" + std::string(kFolder) + "XXXXXX";
  return ::mkdtemp(folder.data()) == nullptr ? std::string() : folder + "/page.html";
}

// For the handler, which may not allocate.
std::string g_unfinished, g_folder;
void RemoveUnfinished(int signal) {
  ::unlink(g_unfinished.c_str());
  if (!g_folder.empty()) ::rmdir(g_folder.c_str());
  ::raise(signal);  // now as if there were no handler
}
void RemoveWhereInterrupted(const std::string& file, bool is_in_own_folder) {
  g_unfinished = file + ".part";
  g_folder = is_in_own_folder ? file.substr(0, file.rfind('/')) : "";
  struct sigaction action {};
  action.sa_handler = RemoveUnfinished;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) (void)::sigaction(signal, &action, nullptr);
}

// $BROWSER is a list, the first of which is asked; "%s" in it stands for the file. Empty: there is
// no screen.
std::vector<std::string> BrowserCommand(const std::string& file) {
  if (!IsSet("BROWSER")) {
    if (!IsSet("DISPLAY") && !IsSet("WAYLAND_DISPLAY")) return {};
    return {"xdg-open", file};
  }
  const std::string all = ::getenv("BROWSER");
  std::istringstream first(all.substr(0, all.find(':')));
  std::vector<std::string> words;
  bool is_placed = false;
  for (std::string word; first >> word;) {
    if (const size_t place = word.find("%s"); place != word.npos) {
      word.replace(place, 2, file);
      is_placed = true;
    }
    words.push_back(word);
  }
  if (!is_placed && !words.empty()) words.push_back(file);
  return words;
}

// False: it is not there, or says that it failed.
bool Start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return false;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int WritePage(const std::vector<std::string>& paths, const RunSelection& selection,
              const std::vector<std::string>& symbols) {
  const std::vector<std::string> last = LastRunsIn(paths);
  const ProgressLine progress;
  Result<Run> run = OpenRun(last);
  if (!run) return Complained(run.message(), kFailure);
  std::vector<std::string> notes;
  if (!SelectOfRun(selection, &*run, &notes)) return kWrongUsage;
  const std::string page = MakePage({}, symbols, notes, paths, &*run);
  std::fwrite(page.data(), 1, page.size(), stdout);
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace

int ViewCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  std::vector<std::string> paths, symbols;
  std::string output;
  RunSelection selection;
  Arguments app("Makes the page of a run and opens it in your browser.", "ranktap view");
  app.Add("RUN...", &paths, "runs or files, as `ranktap report` takes them").Required();
  app.Add("-o,--output", &output, "the page's file; else one in $XDG_RUNTIME_DIR or /tmp");
  AddSelectionOptions(&app, &selection);
  app.Add("--symbols", &symbols, "a folder with modules or debug information; may be repeated")
      .Repeatable();
  if (const auto status = app.Parse(arguments)) return *status;
  const std::string file = output.empty() ? MakePlace() : output;
  if (file.empty()) return Complained("no folder for the page: name a file with -o", kFailure);
  // PrintInto keeps standard output in the file, where a browser's words have no place.
  const FileDescriptor terminal(::dup(STDOUT_FILENO));
  RemoveWhereInterrupted(file, output.empty());
  const int status = PrintInto(file, [&] { return WritePage(paths, selection, symbols); });
  g_unfinished.clear();
  g_folder.clear();
  if (status != kSuccess) {
    if (output.empty()) (void)::rmdir(file.substr(0, file.rfind('/')).c_str());
    return status;
  }
  ::dup2(terminal.get(), ::fileno(stdout));
  const std::vector<std::string> browser = BrowserCommand(file);
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);
  if (browser.empty() || Start(browser)) return kSuccess;
  Complain(fmt::format("{} did not open it", browser.front()));
  return kSuccess;
}

}  // namespace ranktap::collector
