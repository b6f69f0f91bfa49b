// What our threads do before a program restricts itself. GOT_CALLER is a module that makes the
// calls through its table.
#include "agent/entry/confinement.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace ranktap::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string>& Done() {
  static std::vector<std::string> done;
  return done;
}
bool g_pauses = true;

constexpr ConfinementDuties kDuties = {
    .stop_for_good =
        [](std::string_view why) {
          Done().emplace_back(why);
          errno = ENOTTY;
        },
    .pause =
        [](Pauses pauses) {
          Done().emplace_back(pauses == Pauses::kAlways ? "pause" : "pause if alone");
          errno = ENOTTY;
          return g_pauses;
        },
    .resume =
        [] {
          Done().emplace_back("resume");
          errno = ENOTTY;
        },
    .is_alone = [] { return false; },
    .in_fork_child = nullptr};

class ConfinementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const library = dlopen(GOT_CALLER, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    prctl_ =
        reinterpret_cast<int (*)(int, unsigned long, unsigned long)>(dlsym(library, "CallPrctl"));
    setfsuid_ = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "CallSetfsuid"));
    InstallConfinementHooks(kDuties);
    Done().clear();
    g_pauses = true;
  }

  int (*prctl_)(int, unsigned long, unsigned long) = nullptr;
  int (*setfsuid_)(unsigned) = nullptr;
};

TEST_F(ConfinementTest, OursEndForGoodBeforeASeccompFilterAndTheProgramSeesItsOwnError) {
  errno = 0;
  EXPECT_EQ(prctl_(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, /*filter=*/1), -1) << "no filter is there";
  EXPECT_TRUE(errno == EFAULT || errno == EACCES) << errno;
  EXPECT_THAT(Done(), ElementsAre("the program installed a seccomp filter"));
}

TEST_F(ConfinementTest, AQuestionWhetherThereAreFiltersOrACallThatRestrictsNothingStopsNobody) {
  EXPECT_EQ(prctl_(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, /*filter=*/0), -1);
  EXPECT_GE(prctl_(PR_GET_DUMPABLE, 0, 0), 0);
  EXPECT_THAT(Done(), IsEmpty());
}

TEST_F(ConfinementTest, OursAreAwayWhileAThreadChangesItsRightsAndComeBack) {
  EXPECT_EQ(prctl_(PR_SET_KEEPCAPS, 0, 0), 0);
  EXPECT_THAT(Done(), ElementsAre("pause", "resume"));
}

TEST_F(ConfinementTest, NobodyIsAskedBackWhoStayed) {
  g_pauses = false;
  EXPECT_EQ(prctl_(PR_SET_KEEPCAPS, 0, 0), 0);
  EXPECT_THAT(Done(), ElementsAre("pause"));
}

TEST_F(ConfinementTest, WhatChangesOneThreadAloneInLibcPausesOursOnlyBesideOneThread) {
  errno = 0;
  EXPECT_EQ(setfsuid_(geteuid()), static_cast<int>(geteuid()));
  EXPECT_EQ(errno, 0);
  EXPECT_THAT(Done(), ElementsAre("pause if alone", "resume"));
}

}  // namespace
}  // namespace ranktap::agent
