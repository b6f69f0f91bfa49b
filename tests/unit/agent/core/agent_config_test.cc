#include "agent/core/agent_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/environment.h"

namespace ranktap::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ParsedConfig Parse(std::vector<const char*> environment) { return ParseAgentConfig(environment); }

TEST(AgentConfigTest, ReadsItsVariablesAndLeavesOthersAlone) {
  const ParsedConfig parsed =
      Parse({"PATH=/bin", "RANKTAP_SOCKET=/run/x.sock", "RANKTAP_LEVEL=kernels",
             "RANKTAP_RING_MIB=64", "RANKTAP_REDACT=0", "RANKTAP_RANK=7"});
  EXPECT_THAT(parsed.warnings, IsEmpty());
  EXPECT_EQ(parsed.config.socket_path, "/run/x.sock");
  EXPECT_EQ(parsed.config.level, proto::Level::kKernels);
  EXPECT_EQ(parsed.config.ring_mib, 64u);
  EXPECT_FALSE(parsed.config.redact);
  EXPECT_EQ(parsed.config.rank, 7u);
}

TEST(AgentConfigTest, ABadValueKeepsTheDefaultAndSaysWhatWouldDo) {
  const ParsedConfig parsed = Parse({"RANKTAP_RING_MIB=1O24", "RANKTAP_EXIT_MS=-5",
                                     "RANKTAP_LEVEL=everything", "RANKTAP_REDACT=yes"});
  EXPECT_EQ(parsed.config.ring_mib, AgentConfig{}.ring_mib);
  EXPECT_EQ(parsed.config.exit_ms, AgentConfig{}.exit_ms);
  EXPECT_EQ(parsed.config.level, AgentConfig{}.level);
  EXPECT_TRUE(parsed.config.redact);
  EXPECT_THAT(parsed.warnings,
              ElementsAre(HasSubstr("4 to 256"), HasSubstr("0 to 10000"),
                          HasSubstr("dormant, ranges, kernels or full"), HasSubstr("0 or 1")));
}

TEST(AgentConfigTest, ATypoInANameIsReported) {
  EXPECT_THAT(Parse({"RANKTAP_SOKCET=/x"}).warnings,
              ElementsAre(HasSubstr("RANKTAP_SOKCET is not a variable of ranktap")));
}

TEST(AgentConfigTest, VariablesOfTheScriptsAreNoTypos) {
  EXPECT_THAT(Parse({"RANKTAP_BUILD=x", "RANKTAP_STANDIN_TRUTH=/tmp"}).warnings, IsEmpty());
}

TEST(AgentConfigTest, EveryVariableOfTheTableIsUnderstoodAndHasItsDefault) {
  std::set<std::string_view> names;
  for (const proto::EnvVar& variable : proto::kEnvVars) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    if (variable.default_value.empty()) continue;
    const std::string setting =
        std::string(variable.name) + "=" + std::string(variable.default_value);
    const ParsedConfig parsed = Parse({setting.c_str()});
    EXPECT_THAT(parsed.warnings, IsEmpty()) << variable.name;
    EXPECT_EQ(parsed.config, AgentConfig{}) << variable.name << ": not the default";
  }
}

TEST(AgentConfigTest, TheKillSwitchNeedsItsExactValue) {
  const char* off[] = {"PATH=/bin", "RANKTAP_DISABLE=1", nullptr};
  const char* on[] = {"PATH=/bin", "RANKTAP_DISABLE=0", "XRANKTAP_DISABLE=1", nullptr};
  EXPECT_TRUE(DisabledByEnvironment(off));
  EXPECT_FALSE(DisabledByEnvironment(on));
  EXPECT_FALSE(DisabledByEnvironment(nullptr));
}

}  // namespace
}  // namespace ranktap::agent
