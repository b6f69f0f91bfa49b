#include "collector/report/text/name_cut.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>

#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kEllipsis = "...";

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

std::string_view Tail(std::string_view text, size_t count) {
  const size_t width = TextWidth(text);
  return text.substr(TextHead(text, width - std::min(count, width)).size());
}

std::string WithoutParameters(const std::string& full) {
  const bool is_sequence = full.find(" | ") != full.npos;  // of patterns
  return is_sequence ? full : ShortKernelName(full);
}

// "BinaryFunctor<float>" for "gpu_kernel_impl<BinaryFunctor<float>>".
void Unwrap(std::string_view wrapper, std::string* text) {
  for (size_t at = text->find(wrapper); at != text->npos; at = text->find(wrapper, at)) {
    size_t end = at + wrapper.size();
    for (int depth = 1; end < text->size(); ++end) {
      if ((*text)[end] == '<') ++depth;
      if ((*text)[end] == '>' && --depth == 0) break;
    }
    if (end == text->size()) return;
    text->erase(end, 1);
    text->erase(at, wrapper.size());
  }
}

// Of a template: without namespaces, and without what PyTorch's elementwise kernels have in common,
// a wrapper around what they compute and the lambda at the end.
std::string WithoutNoise(const std::string& text) {
  if (text.find("::") == text.npos || text.find('<') == text.npos) return text;
  std::string told = TellingKernelName(text);
  for (size_t at = told.find("::{lambda"); at != told.npos; at = told.find("::{lambda", at)) {
    const size_t end = told.find('}', at);
    if (end == told.npos) break;
    told.erase(at, end + 1 - at);
  }
  for (const std::string_view wrapper : {"gpu_kernel_impl_nocast<", "gpu_kernel_impl<"}) {
    Unwrap(wrapper, &told);
  }
  // The pointers of a vectorized kernel, as many as its functor has operands.
  constexpr std::string_view kPointers = ", array<char*, ";
  for (size_t at = told.find(kPointers); at != told.npos; at = told.find(kPointers, at)) {
    const size_t end = told.find('>', at);
    if (end == told.npos) break;
    told.erase(at, end + 1 - at);
  }
  return told;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Where the identifier around `at` begins, unless that is far.
size_t WordAround(std::string_view text, size_t at) {
  constexpr size_t kFar = 24;
  const std::string_view before = text.substr(0, at);
  const size_t end = before.find_last_of("<(, :");
  const size_t begin = end == before.npos ? 0 : end + 1;
  return at - begin <= kFar ? begin : at;
}

// A template's end begins with a whole word, if that leaves its beginning `kLeastHead`.
std::string WithoutMiddle(const std::string& text, size_t width) {
  constexpr size_t kLeastHead = 10;
  const size_t kept = width > kEllipsis.size() ? width - kEllipsis.size() : 0;
  size_t head = kept / 2;
  std::string_view tail = Tail(text, kept - head);
  if (text.find('<') != text.npos) {
    const size_t begin = text.size() - tail.size(), word = WordAround(text, begin);
    const size_t more = TextWidth(std::string_view(text).substr(word, begin - word));
    if (head >= kLeastHead + more) {
      head -= more;
      tail = std::string_view(text).substr(word);
    }
  }
  return std::string(TextHead(text, head)) + std::string(kEllipsis) + std::string(tail);
}

// Its beginning, and what follows from where it differs from the others on.
std::string FromDifference(const std::string& text, size_t differs, size_t width) {
  constexpr size_t kLeastShown = 8;  // of what differs
  if (width < kEllipsis.size() + kLeastShown) return WithoutMiddle(text, width);
  const bool is_narrow = width < 2 * (kEllipsis.size() + kLeastShown);
  const size_t head = is_narrow ? 0 : width / 3;
  size_t begin = WordAround(text, std::min(differs, text.size() - 1));
  const size_t shown = width - head - kEllipsis.size();
  if (differs >= begin + shown - kLeastShown) begin = differs;
  while (begin > 0 && IsContinuation(text[begin])) --begin;
  if (begin <= head + kEllipsis.size()) {
    const std::string_view all = TextHead(text, width - kEllipsis.size());
    return std::string(all) + std::string(kEllipsis);
  }
  const std::string rest = text.substr(begin);
  const std::string start = std::string(TextHead(text, head)) + std::string(kEllipsis);
  if (TextWidth(rest) <= shown || is_narrow) return start + std::string(TextHead(rest, shown));
  return start + std::string(TextHead(rest, shown - kEllipsis.size())) + std::string(kEllipsis);
}

bool IsPath(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '_' || byte == '.';
  });
}

// What still looks alike gets a number.
void NumberAlike(const std::vector<std::string>& texts, size_t width,
                 std::vector<std::string>* cut) {
  std::map<std::string, std::map<std::string_view, size_t>> alike;
  for (size_t i = 0; i < texts.size(); ++i) alike[(*cut)[i]].emplace(texts[i], 0);
  for (auto& [shown, of_them] : alike) {
    size_t number = 0;
    for (auto& [text, place] : of_them) place = ++number;
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto& group = alike.at((*cut)[i]);
    if (group.size() < 2) continue;
    const std::string end = "~" + std::to_string(group.at(texts[i]));
    const size_t kept = width > end.size() ? width - end.size() : 0;
    (*cut)[i] = std::string(TextHead((*cut)[i], kept)) + end;
  }
}

}  // namespace

std::string CommonPath(const std::vector<std::string>& names) {
  constexpr size_t kLeast = 12, kLeastNames = 3;
  if (names.size() < kLeastNames) return "";
  std::string path = *std::ranges::max_element(names, {}, &std::string::size);
  for (const std::string& name : names) {
    if (!IsPath(name)) return "";
    if (path.starts_with(name + ".")) continue;
    path.resize(CommonPrefix(path, name));
    path.resize(path.rfind('.') + 1);
    if (path.size() < kLeast) return "";
  }
  path.resize(path.rfind('.') + 1);
  const auto begins = [&](const std::string& name) { return name.starts_with(path); };
  const auto count = static_cast<size_t>(std::ranges::count_if(names, begins));
  return path.size() >= kLeast && count >= kLeastNames ? path : "";
}

size_t TextWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(byte); }));
}

std::string_view TextHead(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size() && (count > 0 || IsContinuation(text[at])); ++at) {
    if (!IsContinuation(text[at])) --count;
  }
  return text.substr(0, at);
}

std::vector<std::string> CutNames(const std::vector<std::string>& names, size_t width) {
  std::vector<std::string> texts, cut;
  std::map<std::string, std::set<std::string_view>> alike;  // by what is shown
  std::map<std::string, std::set<std::string_view>> told;   // names by how they read without noise
  for (const std::string& name : names) {
    texts.push_back(TextWidth(name) <= width ? name : WithoutParameters(name));
    if (TextWidth(texts.back()) > width) told[WithoutNoise(texts.back())].insert(texts.back());
  }
  for (std::string& text : texts) {
    if (TextWidth(text) > width) {
      std::string without = WithoutNoise(text);
      if (told[without].size() == 1) text = std::move(without);
    }
    cut.push_back(TextWidth(text) <= width ? text : WithoutMiddle(text, width));
  }
  for (size_t i = 0; i < names.size(); ++i) alike[cut[i]].insert(texts[i]);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::set<std::string_view>& group = alike[cut[i]];
    if (group.size() < 2 || TextWidth(texts[i]) <= width) continue;
    // Sorted, a name shares most with a neighbour.
    const auto at = group.find(texts[i]);
    size_t shared = 0;
    if (at != group.begin()) shared = CommonPrefix(texts[i], *std::prev(at));
    if (std::next(at) != group.end()) {
      shared = std::max(shared, CommonPrefix(texts[i], *std::next(at)));
    }
    cut[i] = FromDifference(texts[i], shared, width);
  }
  NumberAlike(texts, width, &cut);
  return cut;
}

}  // namespace ranktap::collector
