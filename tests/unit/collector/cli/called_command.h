// Runs a verb's function in this process, and keeps what it printed.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace ranktap::collector {

struct CalledCommand {
  int status;
  std::string said, complained;
};

inline CalledCommand Call(int (*command)(const std::vector<std::string>&),
                          const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = command(arguments);
  std::fflush(stdout);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace ranktap::collector
