// NCCL's RAS, and those who listen on its port and are something else.
#include "collector/hang/ras_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience(60'000), kShort(50);

// Listens on a port of its own and treats one caller.
class Listener {
 public:
  explicit Listener(std::function<void(int caller)> treat)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), at, size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    EXPECT_EQ(::getsockname(socket_.get(), at, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, treat = std::move(treat)] {
      const FileDescriptor caller(::accept(socket_.get(), nullptr, nullptr));
      treat(caller.get());
    });
  }
  ~Listener() { thread_.join(); }
  std::string address() const { return "localhost:" + std::to_string(port_); }

 private:
  FileDescriptor socket_;
  uint16_t port_ = 0;
  std::thread thread_;
};

std::string LineFrom(int caller) {
  std::string line;
  for (char c = 0; ::read(caller, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}
void Say(int caller, std::string_view text) {
  (void)::send(caller, text.data(), text.size(), MSG_NOSIGNAL);
}
void AwaitEnd(int caller) {
  for (char byte = 0; ::read(caller, &byte, 1) == 1;) {
  }
}

TEST(RasClientTest, ItIsAskedLineByLineAndItsReportIsWhatItSays) {
  std::string asked;
  std::string told;
  {
    const Listener ras([&](int caller) {
      asked += LineFrom(caller) + "|";
      Say(caller, "SERVER PROTOCOL 2\n");
      asked += LineFrom(caller) + "|";
      Say(caller, "OK\n");
      asked += LineFrom(caller);
      Say(caller, "NCCL version 2.30.7\n\x1b[31mComm  Rank 3 is UNRES");
      Say(caller, "PONSIVE\n");
    });
    told = AskRas(ras.address(), kPatience);
  }
  EXPECT_EQ(asked, "client protocol 2|timeout 2|verbose status");
  EXPECT_EQ(told, "NCCL version 2.30.7\n?[31mComm  Rank 3 is UNRESPONSIVE\n");
}

TEST(RasClientTest, WhoIsNoRasIsNamed) {
  for (const std::string_view answer : {"HTTP/1.1 400 Bad Request\r\n", "\n", "\xff\xfe\n"}) {
    const Listener other([&](int caller) {
      Say(caller, answer);
      AwaitEnd(caller);
    });
    EXPECT_NE(AskRas(other.address(), kPatience).find("is not NCCL's RAS: it answers "),
              std::string::npos);
  }
  const Listener endless([](int caller) {
    while (::send(caller, "nonsense", 8, MSG_NOSIGNAL) > 0) {
    }
  });
  EXPECT_TRUE(AskRas(endless.address(), kPatience).ends_with("is not NCCL's RAS: no line came\n"));
}

TEST(RasClientTest, SilenceAndAReportWithoutEndAreCutOff) {
  const Listener silent(&AwaitEnd);
  EXPECT_TRUE(AskRas(silent.address(), kShort).ends_with("is not NCCL's RAS: no line came\n"));
  const Listener endless([](int caller) {
    Say(caller, "SERVER PROTOCOL 2\nOK\n");
    while (::send(caller, "more of it\n", 11, MSG_NOSIGNAL) > 0) {
    }
  });
  const std::string told = AskRas(endless.address(), kPatience);
  EXPECT_TRUE(told.ends_with("(cut off: 1 MiB)\n"));
  EXPECT_LT(told.size(), (1u << 20) + 100);
}

TEST(RasClientTest, NobodyThereIsNothingAndNoAddressIsSaid) {
  std::string gone;
  {
    const Listener once([](int) {});
    gone = once.address();
    (void)AskRas(gone, kPatience);
  }
  EXPECT_EQ(AskRas(gone, kPatience), "");
  for (const char* const address :
       {"node7:28028", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "[::1]:x", ":", "\x1b[2J:1"}) {
    EXPECT_TRUE(AskRas(address, kPatience).ends_with("no IP address and port\n")) << address;
  }
}

}  // namespace
}  // namespace ranktap::collector
