// Another address, read without touching it: of this process or of another one that may run
// meanwhile. An address that is not mapped is an answer, never a fault.
// Runs on: the sampler; in the collector.  May not: allocate; be used from two threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ranktap::proto {

class MemoryReader {
 public:
  struct Piece {
    uint64_t address;
    void* to;
    size_t bytes;
  };

  virtual ~MemoryReader() = default;
  // How many pieces were read whole, from the first on.
  virtual size_t ReadPieces(std::span<const Piece> pieces) = 0;

  bool Read(uint64_t address, void* to, size_t bytes) {
    const Piece piece{address, to, bytes};
    return ReadPieces({&piece, 1}) == 1;
  }
  template <typename T>
  bool Read(uint64_t address, T* value) {
    return Read(address, value, sizeof(T));
  }
};

// By process_vm_readv, or, with a descriptor of /proc/PID/mem, by pread: for a process whose
// filter may kill the caller of the first.
class ProcessMemory final : public MemoryReader {
 public:
  explicit ProcessMemory(int pid, int mem_descriptor = -1) : pid_(pid), mem_(mem_descriptor) {}
  size_t ReadPieces(std::span<const Piece> pieces) override;
  void UseDescriptor(int mem_descriptor) { mem_ = mem_descriptor; }
  void SetProcess(int pid) { pid_ = pid; }

 private:
  int pid_;
  int mem_;
};

}  // namespace ranktap::proto
