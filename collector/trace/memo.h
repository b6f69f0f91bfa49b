// What was worked out of something and is kept with it, so that the next question does not work it
// out again: one value of each type.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace ranktap::collector {

// Safe from several threads. Values live until Reset(), or as long as the memo does; moving the
// memo's owner leaves them where they are. A function that changes the owner resets the memo, while
// nobody asks it.
class Memo {
 public:
  // make() -> T is called once, or until it does not throw; who asks for T meanwhile waits. It may
  // ask the memo for other types, also on threads that it waits for. No value may ask for one that
  // asks for it: both would wait for ever.
  template <typename T, typename Make>
  const T& Get(Make&& make) const {
    Value& value = kept_->Of(&kKeyOf<T>);
    if (const void* const made = value.made.load(std::memory_order_acquire)) {
      return *static_cast<const T*>(made);
    }
    const std::lock_guard making(value.making);
    if (value.owner == nullptr) {
      value.owner = std::shared_ptr<const T>(new T(make()));
      ++kept_->made;
      value.made.store(value.owner.get(), std::memory_order_release);
    }
    return *static_cast<const T*>(value.owner.get());
  }
  void Reset() {
    auto empty = std::make_unique<Kept>();
    if (kept_ != nullptr) empty->made = kept_->made.load();
    kept_ = std::move(empty);
  }

  // Values that were made so far, and those of them that are there. More than these: some were made
  // again.
  struct Count {
    uint64_t made = 0, kept = 0;
  };
  Count CountValues() const {
    const std::lock_guard lock(kept_->mutex);
    Count count{.made = kept_->made};
    for (const Value& value : kept_->values) count.kept += value.made != nullptr ? 1 : 0;
    return count;
  }

 private:
  template <typename T>
  static inline char kKeyOf = 0;  // its address names T
  struct Value {
    Value(const void* key_of_type, Value* before) : key(key_of_type), next(before) {}
    const void* const key;
    Value* const next;
    std::mutex making;
    std::shared_ptr<const void> owner;       // guarded by `making`
    std::atomic<const void*> made{nullptr};  // what it owns, for those who do not lock
  };
  struct Kept {
    Value* Find(const void* key) const {
      Value* value = first.load(std::memory_order_acquire);
      while (value != nullptr && value->key != key) value = value->next;
      return value;
    }
    Value& Of(const void* key) {
      if (Value* const found = Find(key)) return *found;
      const std::lock_guard lock(mutex);
      if (Value* const found = Find(key)) return *found;
      Value& added = values.emplace_back(key, first.load(std::memory_order_relaxed));
      first.store(&added, std::memory_order_release);
      return added;
    }
    std::mutex mutex;  // of the list, not held while a value is made
    std::list<Value> values;
    std::atomic<Value*> first{nullptr};  // the same, for those who do not lock
    std::atomic<uint64_t> made{0};
  };
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace ranktap::collector
