// The answer to one question: members of a JSON object, each written at once, so that what was
// found before a crash or a hang is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ranktap::gpu {

void Say(std::string_view key, int64_t value);
void Say(std::string_view key, std::string_view text);  // of plain characters
void SayRaw(std::string_view key, const std::string& json);

}  // namespace ranktap::gpu
