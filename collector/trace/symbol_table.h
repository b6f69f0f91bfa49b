// The names of the addresses on a trace's stacks. Filled by collector/symbols, which opens files;
// analyses only read it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace ranktap::collector {

// One function at one place in the source.
struct SourceFrame {
  std::string function;  // demangled; "+0x1f2c" where nothing is known
  std::string file;      // empty: no line information
  uint32_t line = 0;
  bool inlined = false;  // into the frame that follows

  bool operator==(const SourceFrame&) const = default;
};

// The functions at one address of one process.
struct ResolvedAddress {
  std::string module;               // file name; empty: in no module
  std::vector<SourceFrame> frames;  // innermost inlined function first; at least one
};

class SymbolTable {
 public:
  void Add(uint64_t address, ResolvedAddress resolved) {
    addresses_[address] = std::move(resolved);
  }
  // nullptr: not resolved.
  const ResolvedAddress* Find(uint64_t address) const {
    const auto found = addresses_.find(address);
    return found == addresses_.end() ? nullptr : &found->second;
  }
  bool empty() const { return addresses_.empty(); }
  std::vector<std::string>& problems() { return problems_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::unordered_map<uint64_t, ResolvedAddress> addresses_;
  std::vector<std::string> problems_;  // modules without names, one sentence each
};

}  // namespace ranktap::collector
