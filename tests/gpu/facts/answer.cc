#include "tests/gpu/facts/answer.h"

#include <unistd.h>

namespace ranktap::gpu {

void SayRaw(std::string_view key, const std::string& json) {
  const std::string member = "\"" + std::string(key) + "\":" + json + ",";
  (void)!write(STDOUT_FILENO, member.data(), member.size());
}

void Say(std::string_view key, int64_t value) { SayRaw(key, std::to_string(value)); }

void Say(std::string_view key, std::string_view text) {
  SayRaw(key, "\"" + std::string(text) + "\"");
}

}  // namespace ranktap::gpu
