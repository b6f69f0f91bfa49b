// A real shell completes our words with the script that we print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "collector/cli/completion_text.h"
#include "collector/cli/known_words.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string OutputOf(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  char bytes[4096];
  for (size_t got = 0; (got = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;) {
    text.append(bytes, got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

// "a b" in single quotes: the words of the line, the last one to be completed.
std::string InBash(const std::string& line) {
  const TemporaryDirectory directory;
  const std::string script = directory / "completion.bash";
  std::ofstream(script) << BashCompletion(CompletedVerbs());
  return OutputOf("bash -c 'set -eu; source " + script + "; COMP_WORDS=(" + line +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); set +e; _ranktap; "
                  "echo \" ${COMPREPLY[*]} \"'");
}

TEST(CompletionTest, BashCompletesVerbsOptionsValuesReportsAndFormats) {
  EXPECT_THAT(InBash("ranktap re"), HasSubstr(" report "));
  EXPECT_THAT(InBash("ranktap run --le"), HasSubstr(" --level "));
  EXPECT_THAT(InBash("ranktap run --level k"), HasSubstr(" kernels "));
  EXPECT_THAT(InBash("ranktap report x stra"), HasSubstr(" stragglers "));
  EXPECT_THAT(InBash("ranktap report x --format js"), HasSubstr(" json "));
  EXPECT_THAT(InBash("ranktap export x --format chr"), HasSubstr(" chrome "));
  EXPECT_THAT(InBash("ranktap --color never rep"), HasSubstr(" report "));
  EXPECT_THAT(InBash("ranktap run --level kernels --"), HasSubstr(" --schedule "));
  EXPECT_THAT(InBash("ranktap run -- bas"), HasSubstr(" bash "));
}

TEST(CompletionTest, EveryShellsScriptHasEveryVerbAndReport) {
  const std::vector<CompletedVerb> verbs = CompletedVerbs();
  for (const std::string& text :
       {BashCompletion(verbs), ZshCompletion(verbs), FishCompletion(verbs)}) {
    for (const std::string_view name : CommandNames()) EXPECT_THAT(text, HasSubstr(name));
    for (const std::string_view name : ReportNames()) EXPECT_THAT(text, HasSubstr(name));
    for (const std::string_view name : ExportFormats()) EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST(CompletionTest, EachInstalledShellReadsItsScript) {
  const TemporaryDirectory directory;
  const std::vector<CompletedVerb> verbs = CompletedVerbs();
  std::ofstream(directory / "c.bash") << BashCompletion(verbs);
  std::ofstream(directory / "c.zsh") << ZshCompletion(verbs);
  std::ofstream(directory / "c.fish") << FishCompletion(verbs);
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    if (std::system(("command -v " + std::string(shell) + " >/dev/null").c_str()) != 0) continue;
    OutputOf(std::string(shell) + " -n " + (directory / "c.") + shell);
  }
}

bool IsInstalled(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

TEST(CompletionTest, FishCompletesVerbsReportsOptionsAndFormats) {
  if (!IsInstalled("fish")) GTEST_SKIP() << "no fish: scripts/setup installs it";
  const TemporaryDirectory directory;
  std::ofstream(directory / "c.fish") << FishCompletion(CompletedVerbs());
  const auto completed = [&](const std::string& line) {
    return OutputOf("HOME=" + (directory / "") + " fish -c 'source " + (directory / "c.fish") +
                    "; complete -C \"" + line + "\"'");
  };
  EXPECT_THAT(completed("ranktap repo"), HasSubstr("report\t"));
  EXPECT_THAT(completed("ranktap report RUN kern"), HasSubstr("kernels"));
  EXPECT_THAT(completed("ranktap run --lev"), HasSubstr("--level\t"));
  EXPECT_THAT(completed("ranktap export RUN --format chr"), HasSubstr("chrome"));
}

TEST(CompletionTest, ZshFindsItsFunction) {
  if (!IsInstalled("zsh")) GTEST_SKIP() << "no zsh: scripts/setup installs it";
  const TemporaryDirectory directory;
  std::ofstream(directory / "_ranktap") << ZshCompletion(CompletedVerbs());
  EXPECT_EQ(OutputOf("zsh -fc 'fpath=(" + (directory / "") + " $fpath); autoload -Uz compinit; " +
                     "compinit -u -d " + (directory / "dump") +
                     "; print ${_comps[ranktap]}; autoload +X _ranktap && print loaded'"),
            "_ranktap\nloaded\n");
}

}  // namespace
}  // namespace ranktap::collector
