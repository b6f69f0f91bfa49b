#include "collector/trace/symbol_name.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

namespace ranktap::collector {
namespace {

bool IsIdentifier(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

void EraseAll(std::string_view what, std::string* text) {
  for (size_t at; (at = text->find(what)) != text->npos;) text->erase(at, what.size());
}

// Where the bracket at `open` is closed; npos: nowhere.
size_t ClosedAt(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return text.npos;
}

}  // namespace

std::string ReadableKernelName(std::string_view mangled) {
  if (mangled.empty()) return "(name missing)";
  if (!mangled.starts_with("_Z")) return std::string(mangled);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && readable ? std::string(readable.get()) : std::string(mangled);
}

std::string ShortKernelName(std::string_view readable) {
  std::string_view name = readable;
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (!name.ends_with(")")) return std::string(name);
  // The parameter list is the last bracket at the outermost level.
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) {
      // "operator()" and "(anonymous namespace)" are names.
      return at == 0 || name.substr(0, at).ends_with("operator") ? std::string(name)
                                                                 : std::string(name.substr(0, at));
    }
  }
  return std::string(name);
}

std::string BaseKernelName(std::string_view readable) {
  const std::string name = ShortKernelName(readable);
  std::string open;  // brackets; a '>' within parentheses compares
  size_t from = 0, arguments = name.npos;
  for (size_t at = 0; at < name.size(); ++at) {
    const char byte = name[at];
    const std::string_view before = std::string_view(name).substr(from, at - from);
    if (byte == '<' && before.ends_with("operator")) break;
    if (byte == '(' || byte == '{' || byte == '<') {
      if (open.empty() && byte == '<') arguments = at;
      open += byte;
    } else if (byte == ')' || byte == '}') {
      while (!open.empty() && open.back() == '<') open.pop_back();
      if (!open.empty()) open.pop_back();
    } else if (byte == '>' && !open.empty() && open.back() == '<') {
      open.pop_back();
    } else if (open.empty() && std::string_view(name).substr(at).starts_with("::")) {
      from = at + 2;
      arguments = name.npos;
    }
  }
  if (arguments == name.npos) return name.substr(from);
  // A template's name begins with what it returns.
  std::string own = name.substr(from, arguments - from);
  const size_t space = own.rfind(' ');
  return space == own.npos ? own : own.substr(space + 1);
}

std::string TellingKernelName(std::string_view readable) {
  std::string full = ShortKernelName(readable);
  std::string name = full, kept;
  EraseAll("(anonymous namespace)::", &name);
  EraseAll("::operator()() const", &name);
  for (size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = std::string_view(name).substr(at);
    if (rest.starts_with("::") && !kept.empty() && IsIdentifier(kept.back())) {
      while (!kept.empty() && IsIdentifier(kept.back())) kept.pop_back();
      ++at;
      continue;
    }
    const size_t closed = rest[0] == '(' ? ClosedAt(rest, 0) : rest.npos;
    if (closed != rest.npos && rest.substr(closed + 1).starts_with("::{lambda")) {
      // The function's own name stays: the lambda is told apart by it.
      const size_t end = rest.find('}', closed);
      if (end == rest.npos) return full;
      kept += rest.substr(closed + 1, end - closed);
      at += end;
      continue;
    }
    if (rest[0] == '>' && kept.ends_with("> ")) kept.pop_back();
    kept += rest[0];
  }
  return kept;
}

bool IsDemangled(std::string_view recorded) {
  return recorded.find_first_of("(<: ") != recorded.npos;
}

}  // namespace ranktap::collector
