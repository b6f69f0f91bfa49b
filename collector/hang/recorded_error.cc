#include "collector/hang/recorded_error.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "collector/file/file_descriptor.h"
#include "collector/file/json.h"
#include "collector/file/printable.h"
#include "collector/hang/call_place.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

// A rank names the file: it may be anything.
std::string TextOf(const std::string& path) {
  constexpr size_t kMostBytes = 1 << 20;
  const FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  std::string text(std::min<size_t>(static_cast<size_t>(status.st_size), kMostBytes), '\0');
  const ssize_t bytes = ::read(file.get(), text.data(), text.size());
  text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return text;
}

// The lines `  File "train.py", line 31, in main` of a traceback, the innermost first.
ThreadStack FramesOf(std::string_view traceback) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ";
  ThreadStack stack;
  while (!traceback.empty()) {
    const std::string_view line = traceback.substr(0, traceback.find('\n'));
    traceback.remove_prefix(std::min(line.size() + 1, traceback.size()));
    const size_t number = line.find(kLine);
    if (!line.starts_with(kFile) || number == line.npos) continue;
    StackFrame frame{.file = std::string(line.substr(kFile.size(), number - kFile.size()))};
    const char* const digits = line.data() + number + kLine.size();
    (void)std::from_chars(digits, line.data() + line.size(), frame.line);
    if (frame.line != 0) stack.frames.insert(stack.frames.begin(), std::move(frame));
  }
  return stack;
}

}  // namespace

std::string RecordedError(const std::string& file) {
  constexpr size_t kMostCharacters = 300;
  if (file.empty()) return "";
  const Json object = ParseJson(TextOf(file));
  const Json& message = object["message"];
  std::string text = message.TextOf("message");
  text = text.substr(0, std::min(text.find('\n'), kMostCharacters));
  const ThreadStack stack = FramesOf(message["extraInfo"].TextOf("py_callstack"));
  if (!text.empty() && !stack.frames.empty()) text += ", at " + ProgramPlaceOf(stack);
  proto::RedactText(text);
  return Printable(text);
}

}  // namespace ranktap::collector
