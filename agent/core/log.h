// The agent's own messages: to the file that RANKTAP_LOG names and nowhere else, at most 100 a
// process, and counted beyond. Never the job's stdout or stderr.
// Runs on: the starting thread, the sender and drain threads, the exiting thread.  May not: be
// called from a hook in steady state (it makes system calls).
#pragma once

#include <string_view>

namespace ranktap::agent {

// Opens the file for appending (0600); an empty path keeps the log off.
void OpenLog(const char* path);

// One line: "ranktap[pid] text". No allocation, no lock: one write().
void Log(std::string_view text);
void Log(std::string_view text, std::string_view detail);

}  // namespace ranktap::agent
