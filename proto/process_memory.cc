#include "proto/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace ranktap::proto {
namespace {

// On the caller's stack, twice.
constexpr size_t kPiecesACall = 64;

size_t CountWhole(std::span<const MemoryReader::Piece> pieces, size_t bytes) {
  size_t whole = 0;
  while (whole < pieces.size() && pieces[whole].bytes <= bytes) bytes -= pieces[whole++].bytes;
  return whole;
}

}  // namespace

size_t ProcessMemory::ReadPieces(std::span<const Piece> pieces) {
  size_t done = 0;
  while (mem_ >= 0 && done < pieces.size()) {
    const Piece& piece = pieces[done];
    if (pread(mem_, piece.to, piece.bytes, static_cast<off_t>(piece.address)) !=
        static_cast<ssize_t>(piece.bytes)) {
      return done;
    }
    ++done;
  }
  while (done < pieces.size()) {
    const auto next = pieces.subspan(done, std::min(kPiecesACall, pieces.size() - done));
    std::array<iovec, kPiecesACall> here, there;
    for (size_t i = 0; i < next.size(); ++i) {
      here[i] = {next[i].to, next[i].bytes};
      there[i] = {reinterpret_cast<void*>(next[i].address), next[i].bytes};
    }
    const ssize_t bytes =
        process_vm_readv(pid_, here.data(), next.size(), there.data(), next.size(), 0);
    const size_t whole = bytes < 0 ? 0 : CountWhole(next, static_cast<size_t>(bytes));
    done += whole;
    if (whole < next.size()) break;
  }
  return done;
}

}  // namespace ranktap::proto
