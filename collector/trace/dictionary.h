// The names that a trace's events refer to by number, by kind. Filled while a trace is loaded, then
// read-only and thread-safe. An id that never came reads as empty: a lost block costs names, not
// events.
#pragma once

#include <cstdint>
#include <map>
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

  // One more than the largest id.
  size_t strings() const { return strings_.size(); }
  size_t apis() const { return apis_.size(); }
  size_t stacks() const { return stacks_.size(); }
  const std::map<uint32_t, v1::Writer>& writers() const { return writers_; }

 private:
  template <typename T>
  static const T& At(const std::vector<T>& list, uint32_t id) {
    static const T kNone{};
    return id < list.size() ? list[id] : kNone;
  }
  void AddEntry(uint32_t field, uint64_t id, std::string_view content);
  void AddStack(uint32_t id, std::string_view content);
  void AddShape(uint32_t id, const v1::LaunchShapeEntry& entry);

  std::vector<std::string> strings_, domains_;
  std::vector<ApiFunction> apis_;
  std::vector<proto::LaunchShape> shapes_;
  std::vector<bool> known_shapes_;
  // By domain and id: ids are the program's, unique within a domain.
  std::map<std::pair<uint32_t, uint64_t>, v1::PayloadSchema> schemas_;
  std::map<std::pair<uint32_t, uint64_t>, v1::PayloadEnum> enums_;
  std::vector<NativeStack> stacks_;
  std::map<uint32_t, v1::Module> modules_;
  std::map<uint32_t, v1::Writer> writers_;
};

}  // namespace ranktap::collector
