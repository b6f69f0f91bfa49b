#include "collector/stacks/process_stacks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "collector/file/printable.h"
#include "collector/stacks/cuda_calls.h"
#include "collector/stacks/last_exception.h"
#include "collector/stacks/live_symbols.h"
#include "collector/stacks/proc_files.h"
#include "collector/stacks/wait_reason.h"
#include "proto/python_frames.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

using proto::PythonCode;

std::string_view BaseNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "libpython3.9.so.1.0", "python3.10": 0x03090000. 0: none.
uint32_t VersionInName(std::string_view name) {
  const size_t at = name.find("python3.");
  if (at == name.npos) return 0;
  uint32_t minor = 0;
  const char* const digits = name.data() + at + std::string_view("python3.").size();
  (void)std::from_chars(digits, name.data() + name.size(), minor);
  return 0x03000000 | minor << 16;
}

bool MayBePython(std::string_view path) {
  const std::string_view name = BaseNameOf(path);
  return name.starts_with("libpython") || name.starts_with("python") || name.starts_with("pypy");
}

bool LocateIn(const MappedFile& file, proto::MemoryReader& memory, proto::PythonPlace* place) {
  std::array<LiveSymbol, 4> symbols = {{{.name = "_PyRuntime"},
                                        {.name = "PyCode_Type"},
                                        {.name = "Py_Version"},
                                        {.name = "_Py_NegativeRefcount"}}};
  if (!FindLiveSymbols(memory, file.base, symbols) || symbols[0].address == 0) return false;
  *place = {.runtime = symbols[0].address,
            .runtime_bytes = symbols[0].bytes,
            .code_type = symbols[1].address,
            .counts_references = symbols[3].address != 0};
  if (symbols[2].address == 0 || !memory.Read(symbols[2].address, &place->version)) {
    place->version = VersionInName(BaseNameOf(file.path));
  }
  return true;
}

// The interpreter's library before the program that may be a launcher of a few KiB.
std::vector<MappedFile> CandidatesIn(pid_t process) {
  std::vector<MappedFile> files = MappedFilesOf(process);
  std::erase_if(files, [](const MappedFile& file) { return !MayBePython(file.path); });
  std::ranges::stable_sort(files, {}, [](const MappedFile& file) {
    return !BaseNameOf(file.path).starts_with("libpython");
  });
  // A program that has it inside, under a name of its own.
  const std::string program = ReadProcLink(fmt::format("/proc/{}/exe", process));
  for (MappedFile& file : MappedFilesOf(process)) {
    if (file.path == program && !MayBePython(file.path)) files.push_back(std::move(file));
  }
  return files;
}

std::string Shown(std::string text) {
  proto::RedactText(text);
  return Printable(text);
}

// By the number that the process itself sees, in its pid namespace.
std::map<pid_t, pid_t> NumbersInOwnNamespace(pid_t process, const std::vector<pid_t>& alive) {
  std::map<pid_t, pid_t> names;
  for (const pid_t thread : alive) {
    pid_t own = thread;
    const std::string status =
        ReadProcFile(fmt::format("/proc/{}/task/{}/status", process, thread)).value_or("");
    const size_t line = status.find("NSpid:");
    if (line != status.npos) {
      const std::string_view numbers =
          std::string_view(status).substr(line, status.find('\n', line) - line);
      const std::string_view last = numbers.substr(numbers.find_last_of("\t ") + 1);
      (void)std::from_chars(last.data(), last.data() + last.size(), own);
    }
    names.emplace(own, thread);
  }
  return names;
}

void AddCudaCalls(ProcessStacks* stacks) {
  const std::map<pid_t, CudaCall> calls = CudaStateReader(stacks->process).Read().calls;
  if (calls.empty()) return;
  const auto names = NumbersInOwnNamespace(stacks->process, ThreadsOf(stacks->process));
  for (const auto& [own, call] : calls) {
    const auto name = names.find(own);
    if (name == names.end()) continue;
    const auto stack = std::ranges::find(stacks->threads, name->second, &ThreadStack::thread);
    if (stack == stacks->threads.end()) continue;
    stack->cuda_call = Shown(call.name);
    stack->cuda_call_ns = call.since_ns;
  }
}

// What the interpreter is called from in C lies between the Python frames, and is left out.
bool CutAtInterpreter(std::vector<NativeFrame>* frames) {
  const auto interpreter = std::ranges::find_if(*frames, [](const NativeFrame& frame) {
    return frame.function.starts_with("_PyEval_EvalFrameDefault") ||
           frame.function.starts_with("_TAIL_CALL_");
  });
  const bool is_there = interpreter != frames->end();
  frames->erase(interpreter, frames->end());
  return is_there;
}

void AddNativeStacks(ProcessStacks* stacks) {
  NativeStacks native(stacks->process);
  for (const pid_t thread : ThreadsOf(stacks->process)) {
    const auto condition = ConditionOf(stacks->process, thread);
    if (!condition) continue;
    auto known = std::ranges::find(stacks->threads, thread, &ThreadStack::thread);
    const bool is_in_python = known != stacks->threads.end();
    const auto at = ParseBlockedAt(condition->system_call);
    std::vector<NativeFrame> frames;
    bool is_cut = false;
    if (at) frames = native.Read(thread, *at, &is_cut);
    if (is_in_python && CutAtInterpreter(&frames)) is_cut = false;
    for (NativeFrame& frame : frames) {
      frame = {Shown(std::move(frame.module)), Shown(std::move(frame.function))};
    }
    if (!is_in_python) {
      ThreadStack stack{.thread = thread, .name = Shown(condition->name)};
      const auto call = ParseSystemCall(condition->system_call);
      const int descriptor = call ? DescriptorOf(*call) : -1;
      const std::string link = fmt::format("/proc/{}/fd/{}", stacks->process, descriptor);
      stack.does = call ? DescribeSystemCall(*call, descriptor < 0 ? "" : Shown(ReadProcLink(link)))
                        : "runs";
      known = stacks->threads.insert(stacks->threads.end(), std::move(stack));
    }
    known->native = std::move(frames);
    known->native_cut = is_cut;
  }
  if (!stacks->threads.empty()) stacks->problem.clear();
}

}  // namespace

class StackReader::Reader {
 public:
  explicit Reader(pid_t process) : process_(process), memory_(process) {}

  ProcessStacks Read() {
    stacks_ = {.process = process_};
    if (!frames_) stacks_.problem = Locate();
    if (!stacks_.problem.empty()) return std::move(stacks_);
    if (!frames_) frames_.emplace(memory_, place_, layout_);
    if (texts_.size() > kMostTexts) texts_.clear();  // a program may make code for ever
    stacks_.python = fmt::format("{}.{}", place_.version >> 24, place_.version >> 16 & 0xff);
    std::vector<proto::PythonThread> threads;
    constexpr int kTries = 8;
    bool has_list = false;
    for (int i = 0; i < kTries && !has_list; ++i) has_list = frames_->ReadThreads(&threads);
    if (!has_list) {
      frames_.reset();  // another program may run in it by now
      stacks_.problem = "its list of threads changes faster than it can be read";
      return std::move(stacks_);
    }
    const std::vector<pid_t> alive = ThreadsOf(process_);
    names_ = NumbersInOwnNamespace(process_, alive);
    for (const proto::PythonThread& thread : threads) AddThread(thread);
    if (HasRunOut()) AddException();
    return std::move(stacks_);
  }

 private:
  std::string Locate() {
    const bool found = std::ranges::any_of(CandidatesIn(process_), [this](const MappedFile& file) {
      return LocateIn(file, memory_, &place_);
    });
    if (!found) return WhyNoPython();
    const std::string_view problem = proto::FindPythonLayout(memory_, place_, &layout_);
    if (problem.empty()) return "";
    stacks_.python = fmt::format("{}.{}", place_.version >> 24, place_.version >> 16 & 0xff);
    return fmt::format("Python {} is not read: {}", stacks_.python, problem);
  }

  std::string WhyNoPython() const {
    if (ThreadsOf(process_).empty()) return "there is no such process";
    uint64_t word = 0;
    const std::vector<MappedFile> files = MappedFilesOf(process_);
    if (files.empty() || !memory_.Read(files[0].base, &word)) {
      return "its memory cannot be read: it is another user's, or does not allow it "
             "(kernel.yama.ptrace_scope, PR_SET_DUMPABLE)";
    }
    return "it does not run Python";
  }

  bool HasRunOut() const {
    const auto main = std::ranges::find(stacks_.threads, process_, &ThreadStack::thread);
    return main != stacks_.threads.end() && IsAtProgramsEnd(*main);
  }

  void AddException() {
    constexpr size_t kMostCharacters = 300;
    const auto found = ReadLastException(memory_, place_, layout_, &*frames_);
    if (!found) return;
    const std::string message = found->message.substr(0, found->message.find('\n'));
    stacks_.exception = Shown(found->type + (message.empty() ? "" : ": ") + message);
    if (stacks_.exception.size() > kMostCharacters) stacks_.exception.resize(kMostCharacters);
    stacks_.exception = Printable(stacks_.exception);
    for (const auto& [code, line] : found->frames) {
      StackFrame frame = NameOf({.code = code, .offset = 0});
      frame.line = line;
      stacks_.exception_frames.push_back(std::move(frame));
    }
  }

  void AddThread(const proto::PythonThread& listed) {
    constexpr int kTries = 16;
    std::span<const proto::PythonFrame> frames;
    proto::StackRead read = proto::StackRead::kTorn;
    proto::PythonThread thread = listed;
    for (int i = 0; i < kTries && read == proto::StackRead::kTorn; ++i) {
      if (i > 0 && !frames_->Refresh(&thread)) break;
      read = frames_->ReadStack(thread, &frames);
    }
    if (read == proto::StackRead::kTorn) ++stacks_.torn;
    if (frames.empty()) return;  // runs no Python, or cannot be read
    ThreadStack stack;
    const auto known = names_.find(thread.thread);
    if (known != names_.end()) stack.thread = known->second;
    stack.holds_gil = thread.holds_gil;
    stack.truncated = read == proto::StackRead::kTruncated;
    for (const proto::PythonFrame& frame : frames) stack.frames.push_back(NameOf(frame));
    Describe(&stack);
    stacks_.threads.push_back(std::move(stack));
  }

  void Describe(ThreadStack* stack) const {
    const auto condition = ConditionOf(process_, stack->thread);
    if (stack->thread == 0 || !condition) return;
    stack->name = Shown(condition->name);
    const auto call = ParseSystemCall(condition->system_call);
    std::string does = "runs";
    if (call && condition->state != 'R') {
      const int descriptor = DescriptorOf(*call);
      const bool is_gil = IsFutex(*call) && frames_->IsInRuntime(call->arguments[0]);
      does = is_gil ? "waits for the GIL"
                    : DescribeSystemCall(
                          *call, descriptor < 0 ? ""
                                                : Shown(ReadProcLink(fmt::format(
                                                      "/proc/{}/fd/{}", process_, descriptor))));
    } else if (condition->state == 'S' || condition->state == 'D') {
      does = "waits in the kernel";
    }
    if (condition->state == 'T' || condition->state == 't') {
      does = "is stopped" + (call ? ", and before " + does : std::string());
    }
    stack->does = std::move(does);
  }

  StackFrame NameOf(const proto::PythonFrame& frame) {
    auto [at, is_new] = texts_.try_emplace(frame.code.address);
    auto& [code, text] = at->second;
    if (is_new || code != frame.code) {
      code = frame.code;
      if (!frames_->ReadCode(frame.code, &text)) text = {"?", "?", ""};
    }
    return {
        .file = Shown(text.file),
        .function = Shown(text.name),
        .line = proto::PythonLine(layout_.minor, text.line_table, code.first_line, frame.offset)};
  }

  static constexpr size_t kMostTexts = 4096;
  const pid_t process_;
  mutable proto::ProcessMemory memory_;
  proto::PythonPlace place_;
  proto::PythonLayout layout_{};
  std::optional<proto::PythonFrames> frames_;
  std::map<pid_t, pid_t> names_;
  std::map<uint64_t, std::pair<PythonCode, proto::PythonCodeText>> texts_;
  ProcessStacks stacks_;
};

bool IsAtProgramsEnd(const ThreadStack& stack) {
  return !stack.frames.empty() && stack.frames[0].function == "_shutdown" &&
         BaseNameOf(stack.frames[0].file) == "threading.py";
}

StackReader::StackReader(pid_t process) : reader_(std::make_unique<Reader>(process)) {}
StackReader::StackReader(StackReader&& other) noexcept = default;
StackReader::~StackReader() = default;
ProcessStacks StackReader::Read() { return reader_->Read(); }

bool HasPython(pid_t process) {
  proto::ProcessMemory memory(process);
  proto::PythonPlace place;
  return std::ranges::any_of(CandidatesIn(process), [&](const MappedFile& file) {
    return LocateIn(file, memory, &place);
  });
}

ProcessStacks ReadProcessStacks(pid_t process, bool with_native) {
  ProcessStacks stacks = StackReader(process).Read();
  if (with_native) AddNativeStacks(&stacks);
  AddCudaCalls(&stacks);
  return stacks;
}

}  // namespace ranktap::collector
