// How often, and from which seed: fixed in the tests, set by scripts/soak.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ranktap {

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline uint32_t FaultSeed() {
  return static_cast<uint32_t>(FromEnvironment("FAULT_SEED", 20261121));
}

// `in_tests`, or FAULT_COUNT.
inline int FaultCount(int in_tests) {
  return static_cast<int>(FromEnvironment("FAULT_COUNT", static_cast<uint64_t>(in_tests)));
}

}  // namespace ranktap
