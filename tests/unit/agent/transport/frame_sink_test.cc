// When the two sinks say that ring space may go back.
#include "agent/transport/frame_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/transport/collector_link.h"
#include "agent/transport/file_spool.h"

namespace ranktap::agent {
namespace {

using proto::FrameType;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Stored = FrameSink::Stored;

// The spool keeps this much of its cap for the last words.
constexpr uint64_t kLastWords = 256 << 10;
constexpr uint64_t kCap = kLastWords + (64 << 10);

void PutBytes(FrameSink& sink, FrameType type, size_t bytes) {
  const std::string payload(bytes, 'x');
  sink.Put({.type = type}, std::as_bytes(std::span(payload)));
}

std::vector<FrameType> TypesIn(FileSpool& spool) {
  std::span<const std::byte> rest = spool.Read(0, kCap);
  std::vector<FrameType> types;
  while (true) {
    const proto::FrameView frame = proto::DecodeFrame(rest);
    if (frame.status != proto::FrameStatus::kComplete) return types;
    types.push_back(frame.header.type);
    rest = rest.subspan(frame.consumed);
  }
}

class SpoolAsSink : public ::testing::Test {
 protected:
  SpoolAsSink() {
    std::string path = ::testing::TempDir() + "frame_sink_XXXXXX";
    directory_ = mkdtemp(path.data());
    spool_.emplace(FileSpool::Setup{
        .directory = directory_, .session = std::string(16, 's'), .limit_bytes = kCap});
  }
  ~SpoolAsSink() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::optional<FileSpool> spool_;
};

TEST_F(SpoolAsSink, HasFramesInTheFileOnceTheyAreCommitted) {
  ASSERT_TRUE(spool_->Open("hello"));
  PutBytes(*spool_, FrameType::kEvents, 100);
  EXPECT_THAT(TypesIn(*spool_), ElementsAre(FrameType::kHello));
  EXPECT_EQ(spool_->Commit(), Stored::kNow);
  EXPECT_THAT(TypesIn(*spool_), ElementsAre(FrameType::kHello, FrameType::kEvents));
}

TEST_F(SpoolAsSink, KeepsNoneOfTheFramesThatDoNotAllFit) {
  ASSERT_TRUE(spool_->Open("hello"));
  PutBytes(*spool_, FrameType::kDictionary, 100);
  PutBytes(*spool_, FrameType::kEvents, kCap - kLastWords);
  EXPECT_EQ(spool_->Commit(), Stored::kNever);
  EXPECT_THAT(TypesIn(*spool_), ElementsAre(FrameType::kHello));
}

TEST_F(SpoolAsSink, HasRoomForLastWordsWhenItIsFullOfEvents) {
  ASSERT_TRUE(spool_->Open("hello"));
  PutBytes(*spool_, FrameType::kEvents, kCap - kLastWords);
  ASSERT_EQ(spool_->Commit(), Stored::kNever);
  PutBytes(*spool_, FrameType::kGoodbye, kLastWords / 2);
  EXPECT_TRUE(spool_->CommitLastWords());
  EXPECT_THAT(TypesIn(*spool_), ElementsAre(FrameType::kHello, FrameType::kGoodbye));
}

TEST_F(SpoolAsSink, StoresNothingWithoutAFile) {
  PutBytes(*spool_, FrameType::kEvents, 100);
  EXPECT_EQ(spool_->Commit(), Stored::kNever);
  EXPECT_THAT(TypesIn(*spool_), IsEmpty());
}

// As a program may: it does not know whose they are.
void CloseDescriptorsOf(const std::filesystem::path& file) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry, error) == file) {
      close(std::stoi(entry.path().filename()));
    }
  }
}

TEST_F(SpoolAsSink, GoesOnInAFileWhoseDescriptorTheProgramClosed) {
  ASSERT_TRUE(spool_->Open("hello"));
  PutBytes(*spool_, FrameType::kEvents, 100);
  ASSERT_EQ(spool_->Commit(), Stored::kNow);
  const std::filesystem::path file = *std::filesystem::directory_iterator(directory_);
  CloseDescriptorsOf(file);
  EXPECT_TRUE(spool_->open());
  PutBytes(*spool_, FrameType::kGoodbye, 100);
  EXPECT_EQ(spool_->Commit(), Stored::kNow);
  EXPECT_THAT(TypesIn(*spool_),
              ElementsAre(FrameType::kHello, FrameType::kEvents, FrameType::kGoodbye));
}

TEST_F(SpoolAsSink, HasNoFileOnceSomebodyTookItAway) {
  ASSERT_TRUE(spool_->Open("hello"));
  const std::filesystem::path file = *std::filesystem::directory_iterator(directory_);
  CloseDescriptorsOf(file);
  std::filesystem::remove(file);
  EXPECT_FALSE(spool_->open());
  PutBytes(*spool_, FrameType::kEvents, 100);
  EXPECT_EQ(spool_->Commit(), Stored::kNever);
}

TEST(LinkAsSink, CountsTheBytesOfEachConnectionOnce) {
  std::string directory = ::testing::TempDir() + "frame_sink_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = directory + "/socket";
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  CollectorLink link;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(link.Connect(path));
    EXPECT_EQ(link.bytes_sent(), 0u);
    PutBytes(link, FrameType::kEvents, 100);
    EXPECT_TRUE(link.Exchange());
    EXPECT_EQ(link.bytes_sent(), 100 + sizeof(proto::FrameHeader));
    link.Drop();
  }
  close(listener);
  std::filesystem::remove_all(directory);
}

TEST(LinkAsSink, StoresNothingBeforeTheCollectorSaysSo) {
  CollectorLink link;
  PutBytes(link, FrameType::kEvents, 100);
  EXPECT_EQ(link.Commit(), Stored::kOnAck);
  EXPECT_EQ(link.frames_queued(), 1u);
}

TEST(LinkAsSink, IsBehindWithAMebibyteUnsent) {
  CollectorLink link;
  PutBytes(link, FrameType::kEvents, 1 << 19);
  EXPECT_FALSE(link.IsBehind());
  PutBytes(link, FrameType::kEvents, 1 << 19);
  EXPECT_TRUE(link.IsBehind());
  link.Drop();
  EXPECT_FALSE(link.IsBehind());
}

}  // namespace
}  // namespace ranktap::agent
