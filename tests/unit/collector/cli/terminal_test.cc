// What a person at a terminal gets and a pipe does not: a pager, colours, progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "collector/cli/command.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/live_screen.h"
#include "collector/terminal/output_style.h"
#include "collector/terminal/progress_line.h"
#include "collector/trace/work_progress.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::Not;

// What `program` writes on a terminal of its own. `seen`: once this is there, it gets a line.
std::string OnTerminal(const std::function<void()>& program, const std::string& seen = "") {
  int terminal = -1;
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    program();
    std::fflush(stdout);
    ::_exit(0);
  }
  std::string text;
  char bytes[4096];
  bool has_answered = seen.empty();
  for (ssize_t got = 0; (got = ::read(terminal, bytes, sizeof(bytes))) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
    if (has_answered || text.find(seen) == text.npos) continue;
    has_answered = ::write(terminal, "\n", 1) == 1;
  }
  ::waitpid(child, nullptr, 0);
  ::close(terminal);
  return text;
}

class TerminalOutputTest : public testing::Test {
 protected:
  TerminalOutputTest() {
    std::ofstream(run_) << R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,)"
                        << R"("tid":1,"ts":1,"dur":10,"args":{}}]})";
    ::unsetenv("NO_COLOR");
    ::unsetenv("COLUMNS");
  }
  ~TerminalOutputTest() override {
    ::unsetenv("PAGER");
    Style() = {};
  }
  void Report() const { ReportCommand({run_, "ops"}); }

  TemporaryDirectory directory_;
  std::string run_ = directory_ / "t.json";
};

TEST_F(TerminalOutputTest, AReportOnATerminalGoesThroughThePager) {
  ::setenv("PAGER", "sed s/^/PAGED:/", 1);
  EXPECT_THAT(OnTerminal([this] { Report(); }), HasSubstr("PAGED:"));
}

TEST_F(TerminalOutputTest, ALiveScreenLeavesTheTerminalAsItWasHoweverItEnds) {
  const auto with = [](const std::function<void()>& end) {
    return OnTerminal([&end] {
      termios before{}, after{};
      (void)::tcgetattr(STDIN_FILENO, &before);
      const pid_t child = ::fork();
      if (child == 0) {
        const LiveScreen screen;
        screen.Draw("drawn");
        end();
        return;
      }
      ::waitpid(child, nullptr, 0);
      (void)::tcgetattr(STDIN_FILENO, &after);
      std::printf("%s", before.c_lflag == after.c_lflag ? "as it was" : "changed");
    });
  };
  const std::vector<std::function<void()>> ends = {[] {}, [] { ::raise(SIGTERM); },
                                                   [] { ::raise(SIGINT); }, [] { std::abort(); }};
  for (const auto& end : ends) {
    const std::string text = with(end);
    EXPECT_THAT(text, HasSubstr("drawn"));
    EXPECT_THAT(text, HasSubstr("\x1b[?1049l")) << "the other buffer is left";
    EXPECT_THAT(text, HasSubstr("\x1b[?25h")) << "the cursor is back";
    EXPECT_THAT(text, HasSubstr("as it was"));
  }
}

TEST_F(TerminalOutputTest, QuietMeansNoPager) {
  ::setenv("PAGER", "sed s/^/PAGED:/", 1);
  Style().quiet = true;
  EXPECT_THAT(OnTerminal([this] { Report(); }), Not(HasSubstr("PAGED:")));
}

TEST_F(TerminalOutputTest, InAPipeThereIsNeitherPagerNorColour) {
  ::setenv("PAGER", "sed s/^/PAGED:/", 1);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Report();
  std::fflush(stdout);
  const std::string all =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  EXPECT_THAT(all, HasSubstr("aten::mm"));
  EXPECT_THAT(all, Not(HasSubstr("PAGED:")));
  EXPECT_THAT(all, Not(HasSubstr("\x1b")));
  EXPECT_THAT(all, Not(HasSubstr("\r")));
}

TEST_F(TerminalOutputTest, ATerminalHasColoursUnlessNoColorSaysNo) {
  ::setenv("PAGER", "cat", 1);
  EXPECT_THAT(OnTerminal([this] { Report(); }), HasSubstr("\x1b[1m"));
  EXPECT_THAT(OnTerminal([this] {
                ::setenv("NO_COLOR", "1", 1);
                Report();
              }),
              Not(HasSubstr("\x1b")));
}

TEST_F(TerminalOutputTest, ColorAlwaysColoursAPipe) {
  testing::internal::CaptureStdout();
  ReportCommand({run_, "ops", "--color", "always"});
  std::fflush(stdout);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("\x1b[36m"));
}

TEST_F(TerminalOutputTest, WorkOfMoreThanASecondShowsHowFarItIsAndThenNothing) {
  const std::string text = OnTerminal(
      [] {
        Progress().Begin("loading", 4);
        Progress().done = 1;
        const ProgressLine line;
        std::getchar();  // until the line was seen
      },
      "25 %");
  EXPECT_THAT(text, HasSubstr("loading  25 %, "));
  EXPECT_THAT(text, HasSubstr(" s left"));
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
}

TEST(ProgressTextTest, TheRestTakesAsLongAsTheBegan) {
  EXPECT_EQ(ProgressText("loading", 1, 4, 2), "loading  25 %, 6 s left");
  EXPECT_EQ(ProgressText("loading", 0, 4, 2), "loading   0 %");
  EXPECT_EQ(ProgressText("loading", 0, 0, 2), "loading, 2 s");
  for (const uint64_t done : {4, 5}) {
    EXPECT_THAT(ProgressText("loading", done, 4, 2), testing::StartsWith("loading  99 %"));
  }
}

// What a slip of the finger is answered with.
std::string Complaint(int (*command)(const std::vector<std::string>&),
                      const std::vector<std::string>& arguments) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(command(arguments), kWrongUsage);
  return testing::internal::GetCapturedStderr();
}

TEST_F(TerminalOutputTest, TheNearestNameIsProposed) {
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "kernls"}), HasSubstr("did you mean 'kernels'?"));
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "waterfal"}),
              HasSubstr("did you mean 'waterfall'?"));
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "--wher", "calls>1"}),
              HasSubstr("did you mean '--where'?"));
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "ops", "--sort", "cals"}),
              HasSubstr("did you mean 'calls'?"));
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "--format", "jsn"}),
              HasSubstr("it is text, json, csv, html, parquet"));
  EXPECT_THAT(Complaint(&ExportCommand, {run_, "--format", "crome", "-o", "x"}),
              HasSubstr("did you mean 'chrome'?"));
  EXPECT_THAT(Complaint(&ReportCommand, {run_, "nothinglikeit"}), Not(HasSubstr("did you mean")));
}

}  // namespace
}  // namespace ranktap::collector
