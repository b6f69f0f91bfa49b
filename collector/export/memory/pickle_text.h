// Values as a pickle of protocol 2: plain dictionaries, lists, texts and numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ranktap::collector {

// Values are written in order; Begin and End make containers. Texts are kept once.
class PickleText {
 public:
  PickleText() : text_("\x80\x02") {}

  void BeginDict() { text_ += "}("; }
  void EndDict() { text_ += 'u'; }
  void BeginList() { text_ += "]("; }
  void EndList() { text_ += 'e'; }
  void Int(int64_t value) {
    text_ += "\x8a\x08";  // LONG1
    for (int byte = 0; byte < 8; ++byte) text_ += static_cast<char>(value >> (8 * byte));
  }
  void Bool(bool value) { text_ += value ? '\x88' : '\x89'; }
  void Text(std::string_view value) {
    const auto [known, is_new] = memo_.try_emplace(std::string(value), next_);
    if (!is_new) return Again(known->second);
    std::string ascii(value);  // a name may hold any byte, and Python wants UTF-8
    for (char& byte : ascii) {
      if (static_cast<unsigned char>(byte) > 0x7e) byte = '?';
    }
    text_ += 'X';
    Number(static_cast<uint32_t>(ascii.size()));
    text_ += ascii;
    Keep();
  }
  void Item(std::string_view key, int64_t value) {
    Text(key);
    Int(value);
  }
  void Item(std::string_view key, std::string_view value) {
    Text(key);
    Text(value);
  }
  // Names the value that was just written; Again() writes it once more.
  uint32_t Keep() {
    text_ += 'r';  // LONG_BINPUT
    Number(next_);
    return next_++;
  }
  void Again(uint32_t kept) {
    text_ += 'j';  // LONG_BINGET
    Number(kept);
  }

  std::string Take() {
    text_ += '.';
    return std::move(text_);
  }
  // Returns the text so far and forgets it.
  std::string Flush() {
    std::string part;
    part.swap(text_);
    return part;
  }

 private:
  void Number(uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) text_ += static_cast<char>(value >> (8 * byte));
  }

  std::string text_;
  std::map<std::string, uint32_t, std::less<>> memo_;
  uint32_t next_ = 0;
};

}  // namespace ranktap::collector
