// The most that one process can make a collector remember.
#pragma once

#include <cstddef>

#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

inline constexpr size_t kMaxDictionaryBytes = 48u << 20;
inline constexpr size_t kMaxHelloBytes = 1u << 20;
inline constexpr size_t kMaxWriters = 1u << 16;
// Most items in each list of a hello: devices, libraries, notes. Each costs up to 50 times its
// bytes.
inline constexpr int kMaxHelloItems = 1024;

// Whether the lists of a hello are short enough to be remembered.
[[nodiscard]] bool HasFewItems(const v1::Hello& hello);
// Whether each has no more losses than an account can have.
[[nodiscard]] bool AreAccounts(const v1::Accounts& accounts);

}  // namespace ranktap::collector
