// Trials of a CUPTI, with scripts in the place of what tries one: as whom it runs, with what, what
// is made of its answers, and that nobody waits for one that never ends.
#include "collector/ingest/cupti_trials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ranktap::collector {
namespace {

using Outcome = v1::CuptiTrialResult::Outcome;

class CuptiTrialsTest : public testing::Test {
 protected:
  CuptiTrialsTest() {
    std::string pattern = testing::TempDir() + "/trials.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    (void)::chmod(folder_.c_str(), 0777);
  }
  ~CuptiTrialsTest() override { std::filesystem::remove_all(folder_); }

  std::string Script(const std::string& commands) {
    const std::string path = folder_ + "/script";
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\n";
    (void)::chmod(path.c_str(), 0755);
    return path;
  }
  std::string Written() {
    std::ifstream file(folder_ + "/written");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Ask(CuptiTrials* trials, uid_t uid = ::geteuid()) {
    v1::CuptiTrial trial;
    trial.set_cupti("/a/libcupti.so.13");
    trial.set_driver("/a/libcuda.so.1");
    trial.set_cupti_device(7);
    trial.set_cupti_inode(8);
    trials->Try(trial, uid, uid, [this](Outcome outcome) { answers_.push_back(outcome); });
  }
  void Await(size_t answers) {
    while (answers_.size() < answers) (void)loop_.RunOnce(-1);
  }

  EventLoop loop_;
  std::string folder_;
  std::vector<Outcome> answers_;
};

TEST_F(CuptiTrialsTest, ItsDigitIsTheAnswerAndItHearsWhatToTry) {
  CuptiTrials trials(Script("echo \"$@\" >" + folder_ + "/written; printf 2"), &loop_);
  Ask(&trials);
  Await(1);
  EXPECT_EQ(answers_[0], v1::CuptiTrialResult::OUTCOME_DIED);
  EXPECT_EQ(Written(), "try-cupti /a/libcupti.so.13 /a/libcuda.so.1 7 8\n");
}

TEST_F(CuptiTrialsTest, WhoAsksForTheSameWaitsForTheSameTrial) {
  CuptiTrials trials(Script("echo once >>" + folder_ + "/written; printf 1"), &loop_);
  Ask(&trials);
  Ask(&trials);
  Await(2);
  EXPECT_EQ(answers_[1], v1::CuptiTrialResult::OUTCOME_ALIVE);
  EXPECT_EQ(Written(), "once\n");
}

TEST_F(CuptiTrialsTest, SilenceNonsenseAndAProgramThatIsNotThereAreNoAnswer) {
  for (const std::string& program : {Script("exit 0"), Script("printf x"), Script("kill -9 $$"),
                                     folder_ + "/none", std::string()}) {
    CuptiTrials trials(program, &loop_);
    const size_t before = answers_.size();
    Ask(&trials);
    Await(before + 1);
    EXPECT_EQ(answers_.back(), v1::CuptiTrialResult::OUTCOME_NOT_TRIED) << program;
  }
}

TEST_F(CuptiTrialsTest, ItRunsAsTheUserWhoAsksWithNothingOfOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  constexpr uid_t kNobody = 65534;
  CuptiTrials trials(Script("{ id -u; id -ru; id -G; pwd; grep NoNewPrivs /proc/self/status; "
                            "env | grep -v '^PWD='; } >" +
                            folder_ + "/written; printf 1"),
                     &loop_);
  Ask(&trials, kNobody);
  Await(1);
  EXPECT_EQ(Written(), "65534\n65534\n65534\n/\nNoNewPrivs:\t1\n");
}

TEST_F(CuptiTrialsTest, AnotherUsersIsNotTriedWhereOnesOwnIdentityIsAllThereIs) {
  if (::geteuid() == 0) GTEST_SKIP() << "root becomes whoever asks";
  CuptiTrials trials(Script("printf 1"), &loop_);
  Ask(&trials, ::geteuid() + 1);
  Await(1);
  EXPECT_EQ(answers_[0], v1::CuptiTrialResult::OUTCOME_NOT_TRIED);
}

TEST_F(CuptiTrialsTest, OneThatNeverEndsIsKilledWithTheCollector) {
  {
    CuptiTrials trials(Script("exec sleep 600"), &loop_);
    Ask(&trials);
  }
  EXPECT_TRUE(answers_.empty());
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(CuptiTrialsTest, OneThatNeverEndsIsGivenUp) {
  uint64_t now_ns = 0;
  EventLoop loop([&now_ns] { return now_ns; });
  CuptiTrials trials(Script("exec sleep 600"), &loop);
  Ask(&trials);
  now_ns = 31'000'000'000;
  while (answers_.empty()) (void)loop.RunOnce(-1);
  EXPECT_EQ(answers_[0], v1::CuptiTrialResult::OUTCOME_NOT_TRIED);
}

}  // namespace
}  // namespace ranktap::collector
