// A Kineto file as text: its outermost members and its events, one after the other, whatever they
// hold.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "collector/import/byte_source.h"
#include "collector/import/text_window.h"

namespace ranktap::collector {

// A JSON string's text without its quotes; any other text as it is.
inline std::string_view WithoutQuotes(std::string_view value) {
  return value.size() >= 2 && value[0] == '"' ? value.substr(1, value.size() - 2) : value;
}

class KinetoWalk {
 public:
  explicit KinetoWalk(ByteSource* source) : source_(source), window_(source) {}

  // on_member(key, value text) returns false to stop; on_event(text) likewise.
  template <typename OnMember, typename OnEvent>
  void Walk(OnMember on_member, OnEvent on_event) {
    if (std::string_view(window_.begin(), 3) == "\xef\xbb\xbf") {  // as Windows tools write it
      window_.MoveTo(window_.begin() + 3);
    }
    if (window_.Peek() == '[') {
      Events(on_event);
      return;
    }
    if (window_.Peek() != '{') return Damaged("no JSON object");
    Step();
    while (true) {
      while (window_.Peek() == ',') Step();
      const char next = window_.Peek();
      if (next == '}') return;
      const std::string key(next == '"' ? WithoutQuotes(window_.TakeValue()) : std::string_view());
      if (key.empty() || window_.Peek() != ':') {
        return Damaged("a member without a name or a colon");
      }
      Step();
      if (key == "traceEvents" && window_.Peek() == '[') {
        if (!on_member(key, "") || !Events(on_event)) return;
        continue;
      }
      window_.Peek();
      const std::string_view value = window_.TakeValue();
      if (value.empty()) return Damaged(fmt::format("the value of {} is cut off", key));
      if (!on_member(key, value)) return;
    }
  }
  const std::string& damage() const { return damage_; }

 private:
  void Step() { window_.MoveTo(window_.begin() + 1); }
  void Damaged(std::string what) {
    if (!source_->damage().empty()) what = source_->damage();
    damage_ = fmt::format("offset {}: {}; what comes after it is missing",
                          window_.OffsetOf(window_.begin()), what);
  }
  // False: no more of the file is wanted or there.
  template <typename OnEvent>
  bool Events(OnEvent on_event) {
    Step();
    while (true) {
      const char next = window_.Peek();
      if (next == ',') {
        Step();
      } else if (next == ']') {
        Step();
        return true;
      } else if (next == '{') {
        const std::string_view event = window_.TakeValue();
        if (event.empty()) {
          Damaged("an event is cut off or malformed");
          return false;
        }
        if (!on_event(event)) return false;
      } else {
        Damaged(next == 0 ? "the list of events has no end" : "not an event");
        return false;
      }
    }
  }

  ByteSource* source_;
  TextWindow window_;
  std::string damage_;
};

}  // namespace ranktap::collector
