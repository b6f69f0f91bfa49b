// The head of an HTTP/1.1 request, as a browser sends it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ranktap::collector {

struct HttpRequest {
  std::string method;                          // "GET"
  std::string path;                            // decoded, without what follows '?': "/run/a b/"
  std::map<std::string, std::string> headers;  // names in lower case
};

// Reads everything before the empty line. nullopt: it is not a request, or has two Hosts: which of
// them counts is what an attacker would choose.
std::optional<HttpRequest> ParseHttpRequest(std::string_view head);

// "a%20b" is "a b". nullopt: a '%' without two digits, or a zero byte.
std::optional<std::string> PercentDecoded(std::string_view text);
// For one part of a path: '/' too.
std::string PercentEncoded(std::string_view text);

}  // namespace ranktap::collector
