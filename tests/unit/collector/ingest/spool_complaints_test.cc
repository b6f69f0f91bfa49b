// What a collector says of spools that it cannot take.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>

#include "collector/ingest/recovery/spool_adopter.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

TEST(SpoolComplaintsTest, ManyBadSpoolsOfAUserAreAFewLinesAndANumber) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  for (int i = 0; i < 100; ++i) {
    std::ofstream(directory / (std::to_string(i) + ".spool")) << "no frame";
  }
  std::mutex mutex;
  std::condition_variable looked;
  int looks = 0;
  std::vector<std::string> complaints;
  {
    const SpoolAdopter adopter(
        [&] {
          const std::lock_guard lock(mutex);
          ++looks;
          looked.notify_one();
          return std::vector<SpoolDirectory>{{directory.path(), ::geteuid()}};
        },
        [](uid_t) {
          int ends[2];
          if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            return FileDescriptor();
          }
          ::close(ends[0]);
          return FileDescriptor(ends[1]);
        },
        [&](const std::string& what) {
          const std::lock_guard lock(mutex);
          complaints.push_back(what);
        });
    // The second look, five seconds later, comes when the first is over.
    std::unique_lock lock(mutex);
    ASSERT_TRUE(looked.wait_for(lock, std::chrono::seconds(60), [&] { return looks >= 2; }));
  }
  ASSERT_EQ(complaints.size(), 21u);
  EXPECT_THAT(complaints.back(), ::testing::HasSubstr("more than 20 spools of user"));
}

}  // namespace
}  // namespace ranktap::collector
