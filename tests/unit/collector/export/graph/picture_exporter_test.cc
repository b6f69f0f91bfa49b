// The work graph as text for Graphviz and for readers of GraphML.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "collector/export/exporter.h"
#include "collector/import/open_run.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class WorkGraphPicture : public testing::Test {
 protected:
  std::optional<Failure> Write(const std::string& name, const ExportOptions& options = {}) {
    const std::vector<const Trace*> traces = {&run_.traces.at(0)};
    return FindExporter("graph")->write(run_, traces, options, directory_ / name);
  }
  std::string Text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }

  collector::Run run_ = std::move(*OpenRun({RANKTAP_TEST_DATA "/et/pair"}));
  TemporaryDirectory directory_;
};

TEST_F(WorkGraphPicture, GraphMlHasEveryNodeAndEveryDependency) {
  ASSERT_FALSE(Write("out.graphml"));
  const std::string text = Text("out.graphml");
  EXPECT_EQ(Count(text, "<node "), 35u);
  EXPECT_EQ(Count(text, ">control</data>"), 34u);  // all but the thread's own
  EXPECT_THAT(text, HasSubstr("<edge source=\"n12\" target=\"n13\"><data key=\"dependency\">data"));
  EXPECT_THAT(text, HasSubstr("<data key=\"kind\">collective</data>"));
}

TEST_F(WorkGraphPicture, DotHasABoxForEachNodeOfTheWindow) {
  ASSERT_FALSE(Write("all.dot"));
  EXPECT_EQ(Count(Text("all.dot"), "[label="), 35u);
  ExportOptions second;
  second.from = run_.traces[0].realtime_offset_ns + run_.traces[0].first_ns + 1'300'000;
  ASSERT_FALSE(Write("second.dot", second));
  EXPECT_EQ(Count(Text("second.dot"), "[label=\"ProfilerStep#1"), 1u);
  EXPECT_EQ(Count(Text("second.dot"), "[label=\"ProfilerStep#0"), 0u);
}

TEST_F(WorkGraphPicture, BoxesSayWhatIsCommunicatedWithWhom) {
  ASSERT_FALSE(Write("all.dot"));
  const std::string text = Text("all.dot");
  EXPECT_THAT(text, HasSubstr("allreduce, 1048576 B, group 0\""));
  EXPECT_THAT(text, HasSubstr("\\nto rank 1, 262144 B, tag 0\""));
  EXPECT_THAT(text, HasSubstr("[label=\"thread "));
  EXPECT_THAT(text, HasSubstr("Memcpy DtoH (Device -> Pageable)"));
}

TEST_F(WorkGraphPicture, WithoutGraphvizItSaysWhichFormatsNeedNone) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const auto failure = Write("out.svg");
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, HasSubstr(".dot or .graphml"));
}

}  // namespace
}  // namespace ranktap::collector
