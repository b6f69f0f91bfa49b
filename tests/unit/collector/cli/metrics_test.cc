// What Prometheus gets of a collector.
#include "collector/cli/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::ControlReply TwoRanks() {
  v1::ControlReply reply;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    v1::ProcessStatus& process = *reply.add_processes();
    process.set_job("a \"job\"\\");
    process.set_rank(rank);
    process.set_pid(100 + rank);
    process.set_state(v1::ProcessStatus::STATE_CONNECTED);
    process.mutable_live()->set_steps(7);
    process.mutable_live()->set_step_number(41);
    process.mutable_live()->add_step_ns(250'000'000);
    process.mutable_live()->set_data_ns(1'500'000'000);
  }
  return reply;
}

TEST(MetricsTest, ValuesAreInBaseUnitsAndALabelsTextIsEscaped) {
  const std::string text = MetricsText(TwoRanks(), MetricsFormat::kOpenMetrics);
  const std::string labels = R"({job="a \"job\"\\",rank="1",pid="101"})";
  EXPECT_THAT(text, HasSubstr("\nranktap_step" + labels + " 41\n"));
  EXPECT_THAT(text, HasSubstr("\nranktap_steps_total" + labels + " 7\n"));
  EXPECT_THAT(text, HasSubstr("\nranktap_step_duration_seconds" + labels + " 0.25\n"));
  EXPECT_THAT(text, HasSubstr(R"(pid="101",phase="data"} 1.5)"));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(MetricsTest, EachFamilyIsTogetherAndARankHasAtMostFiftySeriesEachOnce) {
  std::istringstream lines(MetricsText(TwoRanks(), MetricsFormat::kOpenMetrics));
  std::set<std::string> series, families;
  std::map<std::string, int> by_rank;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " comes twice";
    }
    if (line.starts_with("#")) continue;
    EXPECT_TRUE(line.starts_with(family)) << line;
    const std::string name = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(series.insert(name).second) << name << " comes twice";
    const size_t pid = name.find("pid=");
    if (pid == name.npos) continue;  // of the collector
    ++by_rank[name.substr(pid, name.find('"', pid + 5) - pid)];
  }
  EXPECT_EQ(by_rank.size(), 2u);
  for (const auto& [rank, count] : by_rank) EXPECT_LE(count, 50) << rank;
}

TEST(MetricsTest, WithoutEventsThereIsNoZeroThatWouldMeanStanding) {
  v1::ControlReply reply = TwoRanks();
  for (auto& process : *reply.mutable_processes()) process.clear_live();
  EXPECT_THAT(MetricsText(reply, MetricsFormat::kOpenMetrics),
              Not(HasSubstr("ranktap_steps_total")));
  EXPECT_THAT(MetricsText(reply, MetricsFormat::kOpenMetrics),
              HasSubstr("ranktap_lost_events_total"));
}

TEST(MetricsTest, InTheOlderFormatAFamilyHasItsSamplesNameAndNoEnd) {
  const std::string text = MetricsText(TwoRanks(), MetricsFormat::kText);
  EXPECT_THAT(text, HasSubstr("# TYPE ranktap_steps_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE ranktap_process_info gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("# UNIT")));
  EXPECT_THAT(text, Not(HasSubstr("# EOF")));
}

TEST(MetricsTest, APlaceIsTheLoopbackUnlessAnAddressIsGiven) {
  const std::pair<const char*, const char*> good[] = {
      {"9400", "127.0.0.1"},           {":9400", "127.0.0.1"},      {"127.0.0.1:9400", "127.0.0.1"},
      {"localhost:9400", "127.0.0.1"}, {"0.0.0.0:9400", "0.0.0.0"}, {"[::]:9400", "::"}};
  for (const auto& [text, address] : good) {
    const auto place = MetricsPlaceOf(text);
    ASSERT_TRUE(place.ok()) << text;
    EXPECT_EQ(place->address, address) << text;
    EXPECT_EQ(place->port, 9400) << text;
  }
  for (const char* const bad : {"", "0", "70000", "94x", "::1:9400", "127.0.0.1:"}) {
    EXPECT_FALSE(MetricsPlaceOf(bad).ok()) << bad;
  }
  EXPECT_FALSE(HttpServer::ListenAt("example.org", 9400, nullptr).ok());
}

std::string Get(uint16_t port, const std::string& path, const std::string& more = "") {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return "not connected";
  }
  const std::string head = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                           "\r\n" + more + "\r\n";
  EXPECT_EQ(::send(socket.get(), head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::recv(socket.get(), bytes, sizeof(bytes), 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(got));
  }
  return answer;
}

TEST(MetricsTest, AScrapeAsksTheCollectorAndNothingElseIsServed) {
  const TestCollector collector;
  std::optional<Metrics> metrics;
  for (int port = 19'400; port < 19'500; ++port) {
    metrics.emplace(MetricsOptions{.address = std::to_string(port)}, collector.socket());
    if (metrics->server() != nullptr) break;
  }
  const HttpServer* const server = metrics->server();
  ASSERT_NE(server, nullptr);
  const std::string answer = Get(server->port(), "/metrics",
                                 "Accept: application/openmetrics-text;version=1.0.0;q=0.8\r\n");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("application/openmetrics-text; version=1.0.0"));
  EXPECT_THAT(answer, HasSubstr("# TYPE ranktap_process info"));
  const std::string older = Get(server->port(), "/metrics");
  EXPECT_THAT(older, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(older, HasSubstr("# TYPE ranktap_process_info gauge"));
  EXPECT_THAT(Get(server->port(), "/"), HasSubstr("404"));
}

TEST(MetricsTest, TheFileIsWholeWheneverItIsReadAndGoesAtTheEnd) {
  const TestCollector collector;
  const TemporaryDirectory directory;
  const std::string path = directory / "ranktap.prom";
  {
    const Metrics metrics({.file = path}, collector.socket());
    while (!std::filesystem::exists(path)) std::this_thread::yield();
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(text.starts_with("# TYPE ranktap_process_info gauge\n")) << text;
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace ranktap::collector
