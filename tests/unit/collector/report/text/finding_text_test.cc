// Findings of rules as paragraphs, and the commands that they name.
#include "collector/report/text/finding_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/report/run_in_commands.h"
#include "collector/report/text/table_text.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

Table OneFinding() {
  return {.name = "insights",
          .title = "What costs time",
          .columns = {{"rule", Unit::kText},
                      {"saving_ns", Unit::kNs},
                      {"saving_percent", Unit::kPercent},
                      {"lost_ns", Unit::kNs},
                      {"rank", Unit::kCount},
                      {"ranks", Unit::kCount},
                      {"where", Unit::kText},
                      {"finding", Unit::kText, Shown::kProse},
                      {"advice", Unit::kText, Shown::kProse},
                      {"command", Unit::kText}},
          .rows = {{std::string("explicit-syncs"), int64_t{6'100'000}, 17.3, int64_t{7'000'000},
                    int64_t{1}, int64_t{3}, std::string("aten::item at train.py(31): step"),
                    std::string("A call that only waits holds the host."),
                    std::string("Leave the call out."),
                    std::string("ranktap report RUN syncs --ranks 1")}}};
}

TEST(FindingText, IsAParagraphOfAmountRankPlaceFindingAdviceAndCommand) {
  EXPECT_EQ(FormatText(OneFinding(), 40, 0),
            "What costs time\n"
            "  1. explicit-syncs: saves at most 6.100\n"
            "     ms (17.3 %), rank 1 and 2 more\n"
            "     at aten::item at train.py(31): step\n"
            "     A call that only waits holds the\n"
            "     host.\n"
            "     -> Leave the call out.\n"
            "     ranktap report RUN syncs --ranks 1\n");
}

TEST(FindingText, CommandsAndPlacesStandWholeWhereTheTerminalIsNarrower) {
  const std::string text = FormatText(OneFinding(), 24, 0);
  EXPECT_THAT(text, testing::HasSubstr("at aten::item at train.py(31): step\n"));
  EXPECT_THAT(text, testing::HasSubstr("ranktap report RUN syncs --ranks 1\n"));
}

TEST(FindingText, WhatNobodyKnowsTheSavingOfSaysWhatItCosts) {
  Table table = OneFinding();
  table.rows[0][1] = table.rows[0][2] = Cell();
  EXPECT_THAT(FormatText(table, 0, 0),
              testing::HasSubstr("explicit-syncs: costs 7.000 ms, rank 1"));
}

TEST(FindingText, RulesThatWereNotCheckedAreOneNote) {
  EXPECT_THAT(WithoutUncheckedRules({"3 rules checked",
                                     "not checked, because nothing ran on a device: a, b, c",
                                     "not checked, because no steps are known: d", "savings"}),
              testing::ElementsAre("3 rules checked",
                                   "4 rules not checked: nothing ran on a device; --verbose lists "
                                   "them",
                                   "savings"));
  EXPECT_THAT(WithoutUncheckedRules({"3 rules checked"}), testing::ElementsAre("3 rules checked"));
}

TEST(RunInCommands, TheRunThatWasOpenedStandsInEachCommand) {
  Table table = OneFinding();
  table.notes = {"ranktap report RUN losses lists it", "RUN=1 stays, and RUNS, and report RUN"};
  NameTheRun({"my run", "b.json"}, &table);
  EXPECT_EQ(std::get<std::string>(table.rows[0][9]),
            "ranktap report 'my run' b.json syncs --ranks 1");
  EXPECT_THAT(table.notes, testing::ElementsAre("ranktap report 'my run' b.json losses lists it",
                                                "RUN=1 stays, and RUNS, and report RUN"));
}

TEST(TellingKernelName, HasNoTemplateNoiseAndKeepsWhatTellsKernelsApartStays) {
  EXPECT_EQ(TellingKernelName(
                "at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
                "at::native::BinaryFunctor<c10::BFloat16, at::native::MulFunctor<float> > >("
                "at::TensorIteratorBase&, at::native::MulFunctor<float> const&)::{lambda(int)#1}>"),
            "elementwise_kernel<128, 4, gpu_kernel_impl_nocast<BinaryFunctor<BFloat16, "
            "MulFunctor<float>>>::{lambda(int)#1}>");
  EXPECT_EQ(TellingKernelName("at::native::f<at::native::copy_kernel(at::Tensor&)::"
                              "{lambda()#3}::operator()() const::{lambda(float)#7}>"),
            "f<copy_kernel::{lambda()#3}::{lambda(float)#7}>");
  EXPECT_EQ(TellingKernelName("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(TellingKernelName("f<(g)1>(::"), "f<(g)1>(::");
}

}  // namespace
}  // namespace ranktap::collector
