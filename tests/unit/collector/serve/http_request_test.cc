#include "collector/serve/http_request.h"

#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

TEST(HttpRequest, HasItsMethodPathAndHeaders) {
  const auto request =
      ParseHttpRequest("GET /a%20b/c?d=e HTTP/1.1\r\nHost: localhost:1\r\nX-Y:  z \r\n");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/a b/c");
  EXPECT_EQ(request->headers.at("host"), "localhost:1");
  EXPECT_EQ(request->headers.at("x-y"), "z");
}

TEST(HttpRequest, IsRefusedWhereItIsNone) {
  for (const char* const head :
       {"", "GET", "GET /", "GET / FTP/1.1\r\n", "GET a HTTP/1.1\r\n", "GET /%0 HTTP/1.1\r\n",
        "GET /%00 HTTP/1.1\r\n", "GET / HTTP/1.1\r\nno colon\r\n", "GET / HTTP/1.1\r\n: x\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n"}) {
    EXPECT_FALSE(ParseHttpRequest(head).has_value()) << head;
  }
}

TEST(PercentCoding, GivesBackWhatItTook) {
  const std::string name = "run <1>/ü%&?#\"";
  EXPECT_EQ(PercentDecoded(PercentEncoded(name)), name);
  EXPECT_EQ(PercentEncoded("a/b"), "a%2Fb");
}

}  // namespace
}  // namespace ranktap::collector
