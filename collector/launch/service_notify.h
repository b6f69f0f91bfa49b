// What systemd wants to hear of a service (sd_notify(3)), without its library. Everything is quiet
// where nobody listens.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ranktap::collector {

// Sends one message to $NOTIFY_SOCKET: "READY=1", "WATCHDOG=1", "STOPPING=1".
void NotifyService(std::string_view message);

// How often the watchdog wants a sign of life; nothing when there is none.
std::optional<uint64_t> WatchdogNs();

}  // namespace ranktap::collector
