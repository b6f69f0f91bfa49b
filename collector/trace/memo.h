// What was worked out of something and is kept with it, so that the next question does not work it
// out again: one value of each type.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

namespace ranktap::collector {

// Safe from several threads. Values live until Reset(), or as long as the memo does; moving the
// memo's owner leaves them where they are. A function that changes the owner resets the memo.
class Memo {
 public:
  // make() -> T is called once; it may ask the memo for other types.
  template <typename T, typename Make>
  const T& Get(Make&& make) const {
    const std::lock_guard lock(kept_->mutex);
    if (const auto found = kept_->values.find(typeid(T)); found != kept_->values.end()) {
      return *static_cast<const T*>(found->second.get());
    }
    auto value = std::make_shared<T>(make());
    const T& made = *value;
    kept_->values.emplace(typeid(T), std::move(value));
    return made;
  }
  void Reset() { kept_ = std::make_unique<Kept>(); }

 private:
  struct Kept {
    std::recursive_mutex mutex;
    std::map<std::type_index, std::shared_ptr<void>> values;
  };
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace ranktap::collector
