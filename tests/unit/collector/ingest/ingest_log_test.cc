// A storm of failures is a handful of lines, and every one is counted.
#include "collector/ingest/ingest_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "collector/ingest/monotonic_clock.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

TEST(IngestLogTest, AStormOfFailuresIsOneLineASecondOfEachKind) {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  const mode_t before = ::umask(0);
  const uint64_t start = MonotonicRawNs();
  {
    IngestLog log(path);
    for (int i = 0; i < 100'000; ++i) {
      log.Count("bad frame", "pid " + std::to_string(i));
      log.Count("disk full", "file " + std::to_string(i));
    }
    EXPECT_EQ(log.counts().at("bad frame"), 100'000u);
    EXPECT_EQ(log.counts().at("disk full"), 100'000u);
  }
  const uint64_t seconds = (MonotonicRawNs() - start) / 1'000'000'000;
  ::umask(before);
  std::ifstream file(path);
  const auto lines =
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n');
  EXPECT_GE(lines, 2);
  EXPECT_LE(lines, static_cast<long>(2 * (seconds + 1)));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(IngestLogTest, WhatAClientSaysForgesNoLine) {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  { IngestLog(path).Count("refused", "x\n[2026-11-22] [ranktap] all is well\x1b[2J\xc2\x9b"); }
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x9b'), std::string::npos);
}

TEST(IngestLogTest, WithoutAPathItOnlyCounts) {
  IngestLog log("");
  log.Count("bad frame", "pid 1");
  EXPECT_EQ(log.counts().at("bad frame"), 1u);
}

}  // namespace
}  // namespace ranktap::collector
