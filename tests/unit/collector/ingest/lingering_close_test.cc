// Descriptors that take long to close: whoever passes them waits for them alone.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/collector_process.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;

// Longer than an agent waits for its welcome (10 s).
constexpr int kLingerSeconds = 30;

// A TCP connection with more in it than its reader takes, whose close waits for the reader.
class Lingering {
 public:
  Lingering() {
    const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    works_ = ::bind(listener.get(), plain, size) == 0 && ::listen(listener.get(), 1) == 0 &&
             ::getsockname(listener.get(), plain, &size) == 0;
    sender_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    works_ = works_ && ::connect(sender_.get(), plain, size) == 0;
    reader_.Reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string bytes(1 << 16, 'x');
    while (works_ && ::send(sender_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger waits{1, kLingerSeconds};
    (void)::setsockopt(sender_.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof(waits));
  }
  bool works() const { return works_ && reader_.valid(); }
  // The one copy that there is.
  FileDescriptor TakeSender() { return std::move(sender_); }

 private:
  FileDescriptor sender_, reader_;
  bool works_ = false;
};

void Pass(int socket, int fd) {
  char byte = 'R';  // as a frame begins
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
  ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), 1);
}

class LingeringCloseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!lingering_.works()) GTEST_SKIP() << "NOT TESTED: no network of our own";
  }
  // Of an honest process, beside what waits to be closed.
  void ExpectServed() {
    {
      FakeAgent honest({.rank = 0});
      Serve(&honest);
    }
    // And long before it has lingered to its end, no thread waits for it any more.
    size_t threads = 0;
    for (int tries = 0; tries < 1000; ++tries) {
      threads = collector_.Threads();
      if (threads <= before_) break;
      ::usleep(10'000);
    }
    EXPECT_LE(threads, before_);
  }
  void Serve(FakeAgent* agent) {
    FakeAgent& honest = *agent;
    ASSERT_TRUE(honest.Join(collector_.socket()).refused().empty());
    honest.Emit(honest.AddWriter(), proto::KernelEvent{});
    honest.Flush();
    honest.AwaitAcks();
  }

  TemporaryDirectory directory_;
  CollectorProcess collector_{directory_.path(), {}};
  size_t before_ = collector_.Threads();
  Lingering lingering_;  // after the fork: else the collector would have a copy of it
};

TEST_F(LingeringCloseTest, ASocketThatLingersHoldsNobody) {
  {
    FakeAgent client;
    client.Connect(collector_.socket());
    const FileDescriptor passed = lingering_.TakeSender();
    Pass(client.socket(), passed.get());
  }
  ExpectServed();
}

TEST_F(LingeringCloseTest, NorDoesOneInsideASocketThatIsPassed) {
  {
    FakeAgent client;
    client.Connect(collector_.socket());
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const FileDescriptor outer(ends[0]), inner(ends[1]);
    const FileDescriptor passed = lingering_.TakeSender();
    Pass(inner.get(), passed.get());
    Pass(client.socket(), outer.get());
  }
  ExpectServed();
}

TEST_F(LingeringCloseTest, NorOneThatWaitsUnreadInAConnectionThatIsClosed) {
  {
    // Stopped, so that both are there before it reads the first.
    ASSERT_EQ(::kill(collector_.pid(), SIGSTOP), 0);
    FakeAgent client;
    client.Connect(collector_.socket());
    client.SendRaw(std::as_bytes(std::span("GET / HTTP/1.1\r\n", 16)));
    const FileDescriptor passed = lingering_.TakeSender();
    Pass(client.socket(), passed.get());
  }
  ASSERT_EQ(::kill(collector_.pid(), SIGCONT), 0);
  ExpectServed();
}

TEST_F(LingeringCloseTest, APeerThatPassesTwoDescriptorsIsClosed) {
  FakeAgent client;
  client.Connect(collector_.socket());
  const FileDescriptor first(::memfd_create("a", MFD_CLOEXEC));
  Pass(client.socket(), first.get());
  char byte;
  try {
    Pass(client.socket(), first.get());
  } catch (const std::exception&) {
  }
  EXPECT_LE(::recv(client.socket(), &byte, 1, 0), 0);
  ExpectServed();
}

}  // namespace
}  // namespace ranktap::collector
