#include "collector/stacks/native_stack.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <charconv>

#include "proto/process_memory.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostFrames = 128;

// Symbols of the libraries themselves will do: looking for others may ask a server.
int FindNoDebugFile(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                    GElf_Word, char**) {
  return -1;
}

uint64_t TakeLastNumber(std::string_view* line) {
  const size_t at = line->find_last_of(' ');
  uint64_t number = 0;
  if (at == line->npos) return 0;
  std::string_view word = line->substr(at + 1);
  if (word.starts_with("0x")) word.remove_prefix(2);
  (void)std::from_chars(word.data(), word.data() + word.size(), number, 16);
  *line = line->substr(0, at);
  return number;
}

}  // namespace

std::optional<BlockedAt> ParseBlockedAt(std::string_view line) {
  BlockedAt at;
  at.instruction = TakeLastNumber(&line);
  at.stack = TakeLastNumber(&line);
  if (at.instruction == 0 || at.stack == 0) return std::nullopt;
  return at;
}

struct NativeStacks::Session {
  Session(pid_t process, bool named) : memory(process), with_functions(named) {}

  proto::ProcessMemory memory;
  bool with_functions;
  BlockedAt at;
  Dwfl* dwfl = nullptr;
  bool is_attached = false;
  std::vector<NativeFrame> frames;

  static Session& Of(void* argument) { return *static_cast<Session*>(argument); }

  static pid_t NoNextThread(Dwfl*, void*, void**) { return 0; }
  static bool GetThread(Dwfl*, pid_t, void* session, void** thread) {
    *thread = session;
    return true;
  }
  static bool ReadWord(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* session) {
    return Of(session).memory.Read(address, word);
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* session) {
    constexpr int kStackPointer = 7;  // by DWARF's numbers for x86-64
    const Dwarf_Word stack = Of(session).at.stack;
    if (!dwfl_thread_state_registers(thread, kStackPointer, 1, &stack)) return false;
    dwfl_thread_state_register_pc(thread, Of(session).at.instruction);
    return true;
  }
  static int AddFrame(Dwfl_Frame* frame, void* session) {
    Dwarf_Addr address = 0;
    bool is_exact = false;
    if (!dwfl_frame_pc(frame, &address, &is_exact)) return DWARF_CB_ABORT;
    // A caller stands behind its call, which may be the last instruction of it.
    if (!is_exact) --address;
    NativeFrame found;
    if (Dwfl_Module* const module = dwfl_addrmodule(Of(session).dwfl, address)) {
      const char* const path =
          dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
      const char* const name =
          Of(session).with_functions ? dwfl_module_addrname(module, address) : nullptr;
      if (path != nullptr) found.module = path;
      found.module.erase(0, found.module.rfind('/') + 1);
      if (name != nullptr) found.function = name;
    }
    Of(session).frames.push_back(std::move(found));
    return Of(session).frames.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }
};

NativeStacks::NativeStacks(pid_t process, bool with_functions)
    : session_(std::make_unique<Session>(process, with_functions)) {
  static const Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                            .find_debuginfo = FindNoDebugFile,
                                            .section_address = nullptr,
                                            .debuginfo_path = nullptr};
  static const Dwfl_Thread_Callbacks kThreads = {.next_thread = Session::NoNextThread,
                                                 .get_thread = Session::GetThread,
                                                 .memory_read = Session::ReadWord,
                                                 .set_initial_registers = Session::SetRegisters,
                                                 .detach = nullptr,
                                                 .thread_detach = nullptr};
  session_->dwfl = dwfl_begin(&kCallbacks);
  if (session_->dwfl == nullptr) return;
  session_->is_attached =
      dwfl_linux_proc_report(session_->dwfl, process) == 0 &&
      dwfl_report_end(session_->dwfl, nullptr, nullptr) == 0 &&
      dwfl_attach_state(session_->dwfl, nullptr, process, &kThreads, session_.get());
}

NativeStacks::~NativeStacks() {
  if (session_->dwfl != nullptr) dwfl_end(session_->dwfl);
}

std::vector<NativeFrame> NativeStacks::Read(pid_t thread, const BlockedAt& at, bool* is_cut) {
  session_->frames.clear();
  session_->at = at;
  *is_cut = !session_->is_attached ||
            dwfl_getthread_frames(session_->dwfl, thread, Session::AddFrame, session_.get()) != 0;
  return session_->frames;
}

}  // namespace ranktap::collector
