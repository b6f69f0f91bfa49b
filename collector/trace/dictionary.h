// The names that a trace's events refer to by number, by kind. Filled while a trace is loaded, then
// read-only and thread-safe. An id that never came reads as empty: a lost block costs names, not
// events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/events.h"
#include "proto/ring.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {

struct ApiFunction {
  proto::ApiDomain domain{};
  uint32_t cbid = 0;
  std::string name;
};

// Innermost frame first: return addresses in the process's memory.
struct NativeStack {
  std::vector<uint64_t> frames;
  bool truncated = false;  // the outermost frames are missing
};

// Entries by id, from 1 up without holes in an honest file. An id far beyond those that came lies
// in a map: one entry of six bytes may say four million.
template <typename T>
class EntryList {
 public:
  // Null: not known.
  const T* Find(uint64_t id) const {
    if (id < near_.size()) return &near_[id];
    const auto found = far_.find(id);
    return found == far_.end() ? nullptr : &found->second;
  }
  T* Room(uint64_t id) {
    if (id < near_.size()) return &near_[id];
    if (id >= kSlack + kGrowth * ++count_) return &far_[id];
    near_.resize(id + 1);
    while (!far_.empty() && far_.begin()->first <= id) {
      near_[far_.begin()->first] = std::move(far_.begin()->second);
      far_.erase(far_.begin());
    }
    return &near_[id];
  }
  uint32_t Append(T entry) {
    if (near_.empty()) near_.emplace_back();
    near_.push_back(std::move(entry));
    return static_cast<uint32_t>(near_.size() - 1);
  }
  // One more than the largest id that is not far.
  size_t size() const { return near_.size(); }
  bool Holds(const auto& value) const {
    return std::ranges::find(near_, value) != near_.end() ||
           std::ranges::any_of(far_, [&](const auto& entry) { return entry.second == value; });
  }

 private:
  // What holes between ids that threads take at once may leave, and many times that.
  static constexpr uint64_t kSlack = 4096, kGrowth = 4;
  std::vector<T> near_;
  std::map<uint64_t, T> far_;
  uint64_t count_ = 0;
};

class Dictionary {
 public:
  // Takes what parses of a serialised v1.Dictionary; false when something did not. Entries that are
  // known already stay as they are.
  bool Add(std::span<const std::byte> bytes);

  // For importers, which number names themselves: the new id.
  uint32_t AppendString(std::string_view text);
  uint32_t AppendApi(ApiFunction api);
  uint32_t AppendShape(const proto::LaunchShape& shape);

  // Id 0 is "none" in every kind.
  std::string_view String(uint32_t id) const { return At(strings_, id); }
  std::string_view Domain(uint32_t id) const { return At(domains_, id); }
  bool HasDomain(std::string_view name) const { return domains_.Holds(name); }
  const ApiFunction& Api(uint32_t id) const { return At(apis_, id); }
  // nullptr: not known.
  const proto::LaunchShape* Shape(uint32_t id) const;
  const v1::PayloadSchema* Schema(uint32_t domain, uint64_t schema_id) const;
  const v1::PayloadEnum* Enum(uint32_t domain, uint64_t enum_id) const;
  const v1::Writer* Writer(uint32_t id) const;
  // Without frames: not known.
  const NativeStack& Stack(uint32_t id) const { return At(stacks_, id); }
  const std::map<uint32_t, v1::Module>& modules() const { return modules_; }
  // The module that has this address; the one loaded last where several had it in turn. nullptr:
  // none.
  const v1::Module* ModuleAt(uint64_t address) const;

  // One more than the largest id; ids far beyond those that came are left out.
  size_t strings() const { return strings_.size(); }
  size_t apis() const { return apis_.size(); }
  size_t stacks() const { return stacks_.size(); }
  const std::map<uint32_t, v1::Writer>& writers() const { return writers_; }

 private:
  template <typename T>
  static const T& At(const EntryList<T>& list, uint32_t id) {
    static const T kNone{};
    const T* const entry = list.Find(id);
    return entry == nullptr ? kNone : *entry;
  }
  void AddEntry(uint32_t field, uint64_t id, std::string_view content);
  void AddStack(uint32_t id, std::string_view content);
  void AddShape(uint32_t id, const v1::LaunchShapeEntry& entry);

  EntryList<std::string> strings_, domains_;
  EntryList<ApiFunction> apis_;
  EntryList<std::optional<proto::LaunchShape>> shapes_;
  // By domain and id: ids are the program's, unique within a domain.
  std::map<std::pair<uint32_t, uint64_t>, v1::PayloadSchema> schemas_;
  std::map<std::pair<uint32_t, uint64_t>, v1::PayloadEnum> enums_;
  EntryList<NativeStack> stacks_;
  std::map<uint32_t, v1::Module> modules_;
  std::map<uint32_t, v1::Writer> writers_;
};

}  // namespace ranktap::collector
