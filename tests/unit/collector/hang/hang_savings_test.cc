// What else is gathered of a hang, while the watch goes on.
#include "collector/hang/hang_savings.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>

#include <filesystem>
#include <latch>

#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HangSavingsTest : public testing::Test {
 protected:
  void Add(const std::string& sentence, std::function<void(HangDirectory*)> fill) {
    const FileDescriptor parent(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY));
    Result<HangDirectory> directory = HangDirectory::Create(parent.get(), folder_.path(), ++made_);
    ASSERT_TRUE(directory.ok()) << directory.message();
    directory_ = directory->path();
    savings_.Add({.sentence = sentence}, std::move(*directory), std::move(fill));
  }
  void AwaitOne() {
    pollfd polled{.fd = savings_.descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&polled, 1, -1), 1);
    while (told_.empty()) savings_.TakeFilled();
  }

  TemporaryDirectory folder_;
  std::string directory_;
  uint64_t made_ = 0;
  std::vector<std::string> told_;
  HangSavings savings_{
      [this](const WaitVerdict& verdict, const std::string& directory, const std::string& problem) {
        EXPECT_TRUE(std::filesystem::exists(directory));
        told_.push_back(verdict.sentence + problem);
      }};
};

TEST_F(HangSavingsTest, AnAnswerThatDoesNotComeHoldsUpNeitherTheWatchNorAnotherHang) {
  std::latch answer(1);
  Add("the first", [&answer](HangDirectory* directory) {
    answer.wait();
    directory->Write("ras.txt", "late");
  });
  savings_.TakeFilled();
  EXPECT_THAT(told_, IsEmpty());
  const std::string first = directory_;
  Add("the second", [](HangDirectory*) {});
  AwaitOne();
  EXPECT_THAT(told_, ElementsAre("the second"));
  answer.count_down();
  savings_.Finish();
  EXPECT_THAT(told_, ElementsAre("the second", "the first"));
  EXPECT_TRUE(std::filesystem::exists(first + "/ras.txt"));
}

TEST_F(HangSavingsTest, TheEndWaitsForAllAndSaysWhatCouldNotBeSaved) {
  Add("the hang", [](HangDirectory* directory) { directory->Write("no/such/folder", "text"); });
  savings_.Finish();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], testing::HasSubstr("could not be written"));
}

}  // namespace
}  // namespace ranktap::collector
