// What a killed collector leaves behind, and who clears it away.
#include "collector/ingest/net/private_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

class PrivateSocketTest : public testing::Test {
 protected:
  PrivateSocketTest() {
    std::string pattern = testing::TempDir() + "/sockets-XXXXXX";
    parent_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_RUNTIME_DIR", parent_.c_str(), 1);
  }
  ~PrivateSocketTest() override { fs::remove_all(parent_); }

  // As if it had been made an hour ago.
  static void MakeOld(const fs::path& directory) {
    const timespec past{.tv_sec = ::time(nullptr) - 3600, .tv_nsec = 0};
    const timespec times[] = {past, past};
    ASSERT_EQ(::utimensat(AT_FDCWD, directory.c_str(), times, 0), 0);
  }

  // The directory of a process that was killed.
  fs::path LeftBehind() {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto socket = PrivateSocket::Create();
      const std::string path = socket ? socket->path() : "";
      (void)!::write(pipe[1], path.data(), path.size());
      ::raise(SIGKILL);
    }
    ::close(pipe[1]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    char path[256] = {};
    EXPECT_GT(::read(pipe[0], path, sizeof(path) - 1), 0);
    ::close(pipe[0]);
    return fs::path(path).parent_path();
  }

  std::string parent_;
};

TEST_F(PrivateSocketTest, TheNextOneRemovesWhatAKilledOneLeft) {
  const fs::path dead = LeftBehind();
  ASSERT_TRUE(fs::exists(dead / "socket"));
  MakeOld(dead);
  const auto next = PrivateSocket::Create();
  ASSERT_TRUE(next) << next.message();
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(next->path()));
}

TEST_F(PrivateSocketTest, WhoListensIsLeftAlone) {
  const auto living = PrivateSocket::Create();
  ASSERT_TRUE(living) << living.message();
  MakeOld(fs::path(living->path()).parent_path());
  RemoveDeadSockets(parent_);
  EXPECT_TRUE(CanConnect(living->path()));
}

TEST_F(PrivateSocketTest, WhoHasNoTimeToListenIsLeftAlone) {
  const fs::path directory = fs::path(parent_) / "ranktap-abcdef";
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (directory / "socket").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  const FileDescriptor listening(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listening.get(), at, sizeof(address)), 0);
  ASSERT_EQ(::listen(listening.get(), 0), 0);
  std::vector<FileDescriptor> waiting;
  int result = 0;
  while (result == 0 && waiting.size() < 100) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    result = ::connect(waiting.back().get(), at, sizeof(address));
  }
  ASSERT_NE(result, 0);
  MakeOld(directory);
  RemoveDeadSockets(parent_);
  EXPECT_TRUE(fs::exists(directory / "socket"));
}

TEST_F(PrivateSocketTest, WhatIsYoungOrNotOursToJudgeIsLeftAlone) {
  const fs::path young = LeftBehind();
  const fs::path fuller = LeftBehind();
  std::ofstream(fuller / "notes") << "somebody's";
  const fs::path other_name = fs::path(parent_) / "ranktap-test-XXXXXX";
  const fs::path open_to_all = fs::path(parent_) / "ranktap-abcdef";
  fs::create_directory(other_name);
  fs::create_directory(open_to_all);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0755), 0);
  const fs::path link = fs::path(parent_) / "ranktap-ABCDEF";
  fs::create_directory_symlink(young, link);
  for (const fs::path& old : {fuller, other_name, open_to_all}) MakeOld(old);
  RemoveDeadSockets(parent_);
  EXPECT_TRUE(fs::exists(young / "socket"));
  EXPECT_TRUE(fs::exists(fuller / "notes"));
  EXPECT_TRUE(fs::exists(other_name));
  EXPECT_TRUE(fs::exists(open_to_all));
  EXPECT_TRUE(fs::is_symlink(link));
}

}  // namespace
}  // namespace ranktap::collector
