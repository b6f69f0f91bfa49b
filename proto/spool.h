// The spool: the file an agent writes while there is no collector.
//
//   Hello frame | frames as they would have gone to the collector, in that order
//
// Where: `<directory>/<session>-<number>.spool`, the session in 32 hex digits, the number counting
// a process's spools from 0. The directory is RANKTAP_SPOOL, else SpoolDirectoryOf(uid); both sides
// make it 0700 and use it only if it is a directory of this user's that nobody else may enter. The
// file is 0600, made with O_EXCL|O_NOFOLLOW, written with pwrite, never mapped, and capped.
//
// Who reads it: the agent itself, if it outlives the outage: it replays the frames to the next
// collector and removes the file once they are acknowledged. A process that ended leaves the file
// to a collector. While the process lives it holds flock(LOCK_EX) on the file: a file that can be
// locked is orphaned, and whoever locked it may adopt and then remove it. (A child made by a raw
// fork system call may hold the lock longer; that only delays the adoption.)
//
// What it promises a reader:
// - A frame is whole or it is the file's last: read up to the first one that is not complete.
// - No frame of events straddles a position that a collector can have stored: frames that were sent
//   before and not acknowledged are encoded again with the same bounds. A reader takes each frame
//   of events or skips it, by its first position.
// - Dictionaries, writers and kept announcements (identity, gaps) come again from the start of
//   each stretch, so the file decodes alone.
// - A process that ended in order has left Accounts of every writer and Goodbye at the end. Without
//   them it was killed: what its rings still held is gone with it, since nobody else had them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ranktap::proto {

inline constexpr std::string_view kSpoolSuffix = ".spool";

// /var/tmp outlives a reboot and is not in memory.
inline std::string SpoolDirectoryOf(uint32_t uid) {
  return "/var/tmp/ranktap-spool-" + std::to_string(uid);
}

inline std::string SpoolFileName(std::string_view session_hex, uint32_t number) {
  return std::string(session_hex) + "-" + std::to_string(number) + std::string(kSpoolSuffix);
}

}  // namespace ranktap::proto
