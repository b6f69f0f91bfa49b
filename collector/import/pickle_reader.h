// Reads the plain values of a Python pickle: numbers, texts, lists, tuples, dicts. Everything that
// a pickle can ask for beyond those (importing, calling, building) ends the reading: nothing in the
// file is ever executed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/trace_reader.h"

namespace ranktap::collector {

// One thread. Takes up to 40 B of memory for a byte of a hostile file, 2 to 3 for real ones.
class Pickle {
 public:
  using Id = uint32_t;
  enum class Kind : uint8_t { kNothing, kInt, kReal, kText, kList, kDict };

  // `bytes` must outlive the pickle. root() after an early end is what had been read: containers
  // that were still open hold what they had got.
  explicit Pickle(std::string_view bytes);

  Id root() const { return root_; }
  const std::optional<Damage>& damage() const { return damage_; }

  Kind KindOf(Id id) const { return values_[id].kind; }
  int64_t Int(Id id) const;            // 0: not a number
  std::string_view Text(Id id) const;  // empty: not a text
  // The items of a list or a tuple; a dict's keys and values in turn. Empty for anything else.
  std::span<const Id> Items(Id id) const;
  // The value of a key that is a text; 0, which is nothing: there is none.
  Id Find(Id dict, std::string_view key) const;

 private:
  struct Value {
    Kind kind = Kind::kNothing;
    uint32_t size_or_container = 0;
    int64_t number_or_offset = 0;
  };

  void Run();
  bool Step(uint8_t opcode);
  bool StepText(uint8_t opcode);
  bool StepNumber(uint8_t opcode);
  bool StepContainer(uint8_t opcode);
  bool StepMemo(uint8_t opcode);
  void CloseAll();

  bool Take(size_t bytes, std::string_view* taken);
  bool TakeLength(size_t bytes, uint64_t* length);
  bool TakeLine(std::string_view* line);
  void Push(Value value);
  bool PushInt(int64_t value);
  bool PushText(uint64_t bytes);
  bool PushContainer(Kind kind, size_t from);
  // Moves what lies above the last mark into the container below it.
  bool Fill(size_t from);
  bool PopMark(size_t* from);
  bool Remember(uint64_t index);
  bool Recall(uint64_t index);

  std::string_view bytes_;
  size_t at_ = 0;
  std::vector<Value> values_;
  std::vector<std::vector<Id>> containers_;
  std::vector<Id> stack_, memo_;
  std::vector<size_t> marks_;
  Id root_ = 0;
  std::optional<Damage> damage_;
};

}  // namespace ranktap::collector
