#include "collector/serve/http_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace ranktap::collector {
namespace {

int DigitOf(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Up to the line's end, which is taken away.
std::string_view TakeLine(std::string_view* text) {
  const size_t end = text->find("\r\n");
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end == text->npos ? text->size() : end + 2);
  return line;
}

bool ParseRequestLine(std::string_view line, HttpRequest* request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || first == last || !line.substr(last + 1).starts_with("HTTP/1.")) {
    return false;
  }
  request->method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  target = target.substr(0, target.find_first_of("?#"));
  const std::optional<std::string> path = PercentDecoded(target);
  if (!path || !path->starts_with('/')) return false;
  request->path = *path;
  return true;
}

}  // namespace

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? DigitOf(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const auto unit = static_cast<unsigned char>(byte);
    const bool is_plain = unit < 128 && (std::isalnum(unit) != 0 || byte == '-' || byte == '_' ||
                                         byte == '.' || byte == '~');
    if (is_plain) {
      encoded += byte;
    } else {
      encoded += fmt::format("%{:02X}", unit);
    }
  }
  return encoded;
}

std::optional<HttpRequest> ParseHttpRequest(std::string_view head) {
  HttpRequest request;
  if (!ParseRequestLine(TakeLine(&head), &request)) return std::nullopt;
  while (!head.empty()) {
    const std::string_view line = TakeLine(&head);
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0) return std::nullopt;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](char byte) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    });
    const bool is_new =
        request.headers.emplace(name, std::string(Trimmed(line.substr(colon + 1)))).second;
    if (!is_new && name == "host") return std::nullopt;
  }
  return request;
}

}  // namespace ranktap::collector
