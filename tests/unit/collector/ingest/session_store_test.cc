// What becomes of a trace whose disk is full, or whose directory is gone.
#include "collector/ingest/store/session_store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include "collector/trace/load/trace_check.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;

class SessionStoreTest : public ::testing::Test {
 protected:
  SessionStoreTest()
      : directory_(std::move(*RunDirectory::Create(temporary_ / "run", "x"))),
        context_{&directory_, &compressor_, std::string(16, 'c'), {}},
        store_(&context_, Hello(), 4711) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &unlimited_);
  }
  ~SessionStoreTest() override { ::setrlimit(RLIMIT_FSIZE, &unlimited_); }

  static v1::Hello Hello() {
    v1::Hello hello;
    hello.set_session("0123456789abcdef");
    hello.mutable_rank()->set_rank(0);
    return hello;
  }
  // A block of ten kernels of writer 1, positions counting up.
  FrameBlock Kernels() {
    proto::EventEncoder encoder;
    std::vector<proto::KernelEvent> kernels = MakeKernels(10, 1000 + next_ * 1000, next_ + 1);
    for (auto& kernel : kernels) {
      kernel.header = {1, sizeof(kernel), 0, 0};
      kernel.name = 0;
      EXPECT_TRUE(encoder.Add(&kernel.header, sizeof(kernel)));
    }
    IdentityIds ids;
    std::string payload;
    encoder.Encode(ids, payload);
    FrameBlock block;
    block.Append(
        {.type = proto::FrameType::kEvents, .writer = 1, .first_event = next_, .events = 10},
        std::as_bytes(std::span(payload)), 1);
    next_ += 10;
    return block;
  }
  FrameBlock Goodbye() {
    v1::Goodbye goodbye;
    v1::Account& account = *goodbye.mutable_accounts()->add_accounts();
    account.set_writer(1);
    account.set_produced(next_);
    account.set_committed(next_);
    FrameBlock block;
    const std::string payload = goodbye.SerializeAsString();
    block.Append({.type = proto::FrameType::kGoodbye}, std::as_bytes(std::span(payload)), 1);
    return block;
  }
  void LimitFiles(uint64_t bytes) {
    rlimit limit = unlimited_;
    limit.rlim_cur = bytes;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  void Close() {
    v1::Ending ending;
    ending.set_how(v1::Ending::HOW_GOODBYE);
    store_.Close(ending);
  }

  TemporaryDirectory temporary_;
  RunDirectory directory_;
  BlockCompressor compressor_;
  StoreContext context_;
  SessionStore store_;
  rlimit unlimited_{};
  uint64_t next_ = 0;
};

TEST_F(SessionStoreTest, WhatCouldNotBeWrittenIsDeclaredOnceThereIsRoomAgain) {
  store_.Store(Kernels());
  LimitFiles(store_.infos().back().bytes + 50);
  store_.Store(Kernels());
  store_.Store(Kernels());
  EXPECT_THAT(store_.infos().back().detail, HasSubstr("File too large"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited_), 0);
  store_.Store(Kernels());
  store_.Store(Goodbye());
  Close();

  const auto trace = LoadTrace(temporary_ / "run/rank-00000.trace");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->kernels.size(), 20u);
  ASSERT_EQ(trace->writers.size(), 1u);
  EXPECT_EQ(trace->writers[0].declared[static_cast<size_t>(proto::Loss::kStore)], 20u);
  const auto check = CheckRun(temporary_ / "run");
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->ok()) << check->traces[0].problems[0].what;
}

TEST_F(SessionStoreTest, AFullDiskAtEveryByteLeavesAFileThatAddsUp) {
  for (uint64_t limit = 0; limit < 3000; limit += 7) {
    const uint64_t begin = next_ = 0;
    SessionStore store(&context_, Hello(), 4711);
    LimitFiles(limit);
    for (int i = 0; i < 4; ++i) store.Store(Kernels());
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited_), 0);
    store.Store(Kernels());
    store.Store(Goodbye());
    v1::Ending ending;
    ending.set_how(v1::Ending::HOW_GOODBYE);
    store.Close(ending);
    ASSERT_EQ(begin, 0u);
    const std::string path = temporary_ / "run/" + store.infos().back().file;
    const auto check = CheckRun(path);
    ASSERT_TRUE(check.ok()) << "limit " << limit << ": " << check.message();
    ASSERT_TRUE(check->ok()) << "limit " << limit << ": " << check->traces[0].problems[0].what;
    ASSERT_EQ(check->traces[0].writers.at(1).next_event, 50u);
    std::filesystem::remove(path);
  }
}

TEST_F(SessionStoreTest, NoFileIsMadeBeforeTheFirstEvent) {
  FrameBlock gap;
  const std::string payload = v1::Gap().SerializeAsString();
  gap.Append({.type = proto::FrameType::kGap}, std::as_bytes(std::span(payload)), 1);
  store_.Store(gap);
  EXPECT_TRUE(store_.infos().empty());
  store_.Store(Kernels());
  store_.Store(Goodbye());
  Close();
  const auto trace = LoadTrace(temporary_ / "run/rank-00000.trace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->gaps.size(), 1u) << "what came before is there all the same";
}

TEST_F(SessionStoreTest, AProcessThatComesBackGetsAnotherFile) {
  store_.Store(Kernels());
  store_.Store(Goodbye());
  Close();
  store_.Store(Kernels());
  store_.Store(Goodbye());
  Close();
  ASSERT_EQ(store_.infos().size(), 2u);
  EXPECT_EQ(store_.infos()[1].file, "rank-00000.1.trace");
  const auto check = CheckRun(temporary_ / "run");
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->ok()) << "together they hold every event";
  // One of them alone does not.
  EXPECT_FALSE(CheckRun(temporary_ / "run/rank-00000.1.trace")->ok());
}

}  // namespace
}  // namespace ranktap::collector
