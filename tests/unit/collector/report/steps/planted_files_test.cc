// What is said of files that hold less than a recording of ours: advice for whoever made them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/report/insights/find_insights.h"
#include "collector/report/report.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/file_notes.h"
#include "tests/unit/collector/report/steps/planted_program.h"

namespace ranktap::collector {
namespace {

// One kernel, and nothing else that a table could show.
Program OneKernelOf(TraceOrigin origin) {
  Program program;
  program.trace().origin = origin;
  program.AddKernel(0, kMs, 2 * kMs);
  return program;
}

// The notes of all tables that speak of the levels of our own recordings.
std::string NotesAboutOurLevels(const collector::Run& run) {
  std::string said;
  for (const Report& report : AllReports()) {
    // "hang" says what it reads, of whomever.
    if (report.run == nullptr || report.name == "hang") continue;
    for (const std::string& note : report(run).notes) {
      const bool is_about = note.find("--level") != note.npos || note.find("at level") != note.npos;
      if (!is_about || note.find("ranktap run --level") != note.npos) continue;
      said += std::string(report.name) + ": " + note + "\n";
    }
  }
  return said;
}

TEST(PlantedFiles, AnImportIsNotToldToRecordAtAnotherLevelOfOurs) {
  for (const TraceOrigin origin : {TraceOrigin::kKineto, TraceOrigin::kNsys}) {
    Program program = OneKernelOf(origin);
    EXPECT_EQ(NotesAboutOurLevels(program.run()), "");
    const Table groups = (*FindReport("groups"))(program.run());
    ASSERT_EQ(groups.notes.size(), 1u);
    EXPECT_THAT(groups.notes[0], testing::StartsWith("the file names no process group"));
  }
}

TEST(PlantedFiles, ARecordingOfOursIs) {
  Program program = OneKernelOf(TraceOrigin::kCapture);
  EXPECT_THAT(NotesAboutOurLevels(program.run()), testing::HasSubstr("groups: no process groups"));
}

// Chakra's nodes with durations and without starts: an importer puts them behind each other.
TEST(PlantedFiles, WithoutStartsNothingIsSaidOfOverlapIdleTimeAndOrder) {
  for (const bool has_starts : {true, false}) {
    Program program;
    program.trace().origin = TraceOrigin::kChakra;
    if (!has_starts) program.trace().info.notes.emplace_back(kNodesWithoutStart);
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.AddStep(at, at + 10 * kMs);
      program.AddKernel(at, at + 6 * kMs, at + 10 * kMs);
    }
    const collector::Run& run = program.run();
    EXPECT_EQ(Judge(run).refused, !has_starts) << Judge(run).sentence;
    for (const char* const name : {"overlap", "temporal", "usage", "pace", "critical-path"}) {
      EXPECT_EQ((*FindReport(name))(run).rows.empty(), !has_starts) << name;
    }
    EXPECT_EQ(FindInsights(run).list.empty(), !has_starts);
    if (has_starts) continue;
    EXPECT_EQ(Judge(run).sentence,
              "No verdict: the nodes of process.trace have no start, so what ran at once, when a "
              "device was idle and which rank was late is not known.");
    EXPECT_EQ((*FindReport("kernels"))(run).rows.size(), 1u);  // durations are known
  }
}

}  // namespace
}  // namespace ranktap::collector
