// The Python stacks of a process, read from its memory while its threads run: no lock, no signal,
// no call into Python, so that a process which is stuck with the interpreter's lock is read too.
// docs/decisions/0013 says why. What is read may change meanwhile. A frame is believed only if its
// code object is one by its type, its owner is one of that version, and its instruction lies in
// that code; a stack with a frame that is not is torn, and counted.
// Runs on: the sampler; in the collector.  May not: allocate after the constructor; write to what
// it reads; be used from two threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/process_memory.h"
#include "proto/python_layout.h"

namespace ranktap::proto {

// A code object: its address alone names it only while it lives, and half of 2,000 short-lived
// ones took the address of another on 3.11.
struct PythonCode {
  uint64_t address = 0;
  uint64_t filename = 0, name = 0, qualname = 0, line_table = 0;  // str, str, str, bytes
  uint32_t first_line = 0;
  uint32_t code_bytes = 0;
  bool operator==(const PythonCode&) const = default;
};

struct PythonFrame {
  PythonCode code;
  uint32_t offset = 0;  // of the instruction, in bytes from the first
  bool operator==(const PythonFrame&) const = default;
};

struct PythonThread {
  uint64_t state = 0;    // PyThreadState*
  uint64_t pthread = 0;  // pthread_t
  uint64_t chunk = 0;
  uint64_t frame = 0;      // the innermost
  int32_t thread = 0;      // its number in its own pid namespace; 0: not known
  bool holds_gil = false;  // takes it last, and has not given it back
};

enum class StackRead : uint8_t {
  kRead,
  kTruncated,  // its outermost frames are left out
  kTorn,       // it changed while it was read
};

// What a code object says of itself, as copied.
struct PythonCodeText {
  std::string file, name, line_table;
};

class PythonFrames {
 public:
  static constexpr size_t kMostFrames = 512;
  static constexpr size_t kMostThreads = 4096;

  // `layout` is FindPythonLayout's of the same place.
  PythonFrames(MemoryReader& memory, const PythonPlace& place, const PythonLayout& layout);

  // The same interpreter's memory from here on lies so far from where `place` said: that of another
  // process.
  void SetShift(uint64_t shift) { shift_ = shift; }

  // The threads that run Python or have run it: of all interpreters, the newest `most`. False: the
  // list cannot be followed now.
  [[nodiscard]] bool ReadThreads(std::vector<PythonThread>* threads, size_t most = kMostThreads);

  // Where the thread is now, if it still is.
  [[nodiscard]] bool Refresh(PythonThread* thread);

  // The frames of a thread, the innermost first, valid until the next call.
  StackRead ReadStack(const PythonThread& thread, std::span<const PythonFrame>* frames);

  // False: it is no longer there.
  [[nodiscard]] bool ReadCode(const PythonCode& code, PythonCodeText* text) {
    return ReadNames(code, text) && ReadLineTable(code, &text->line_table);
  }
  [[nodiscard]] bool ReadNames(const PythonCode& code, PythonCodeText* text);
  [[nodiscard]] bool ReadLineTable(const PythonCode& code, std::string* table) {
    return ReadBytes(code.line_table, table);
  }

  // How many threads wait for the main interpreter's lock, as glibc's condition variable counts
  // them. After ReadThreads.
  uint32_t CountGilWaiters();

  // Whether an address that a thread waits at is of the interpreter: its lock.
  bool IsInRuntime(uint64_t address) const {
    return address >= runtime() && address - runtime() < place_.runtime_bytes;
  }
  const PythonLayout& layout() const { return layout_; }

 private:
  struct Link {
    uint64_t code, instruction;
  };

  uint64_t runtime() const { return place_.runtime + shift_; }
  bool ReadInterpreter(uint64_t interpreter, std::vector<PythonThread>* threads, size_t most);
  bool ReadThread(uint64_t state, uint64_t holder, PythonThread* thread, uint64_t* next);
  uint64_t FindGil(uint64_t interpreter);
  uint64_t FindGilHolder(uint64_t interpreter);
  void CopyChunk(const PythonThread& thread);
  const std::byte* FrameAt(uint64_t address);
  bool ReadLinks(uint64_t frame, bool* truncated);
  bool ReadCodes();
  bool Believe(const Link& link, const std::byte* code, PythonFrame* frame);
  bool ReadText(uint64_t text, std::string* to);
  bool ReadBytes(uint64_t bytes, std::string* to);

  static constexpr size_t kChunkBytes = 64 << 10, kCodeBytes = 160, kFrameBytes = 128;

  MemoryReader& memory_;
  const PythonPlace place_;
  const PythonLayout layout_;
  uint64_t shift_ = 0;
  std::vector<std::byte> chunk_, codes_;
  uint64_t chunk_begin_ = 0, chunk_end_ = 0;
  uint64_t main_interpreter_ = 0;
  std::array<std::byte, kFrameBytes> single_{};
  std::vector<Link> links_;
  std::vector<MemoryReader::Piece> pieces_;
  std::vector<PythonFrame> frames_;
};

// The line of an instruction; 0: it has none. `minor`: PythonLayout's. For the collector.
uint32_t PythonLine(uint16_t minor, std::string_view line_table, uint32_t first_line,
                    uint32_t offset);

}  // namespace ranktap::proto
