// One process of an nsys file: the trace that it becomes, and the numbers that rows refer to things
// by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/import/interner.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// StringIds: texts by the file's ids.
class NsysStrings {
 public:
  void Add(int64_t id, std::string_view text) { texts_[id] = text; }
  std::string_view Text(int64_t id) const {
    const auto found = texts_.find(id);
    return found == texts_.end() ? std::string_view() : std::string_view(found->second);
  }

 private:
  std::unordered_map<int64_t, std::string> texts_;
};

// "cudaLaunchKernel" for "cudaLaunchKernel_v7000": other tools leave the interface's version out.
std::string_view WithoutVersion(std::string_view name);

class NsysProcess {
 public:
  NsysProcess(int64_t global_pid, const NsysStrings* strings);

  Trace& trace() { return trace_; }
  // Dictionary::String of a row of StringIds, of a text.
  uint32_t NameOf(int64_t string_id);
  uint32_t NameOf(std::string_view text);
  uint32_t ApiOf(int64_t string_id, proto::ApiDomain domain);
  uint32_t LaneOf(const Lane& lane);
  uint32_t ShapeOf(const proto::LaunchShape& shape);
  uint16_t WriterOf(int64_t global_tid);
  uint16_t DomainOf(int64_t domain_id);
  void NameThread(int64_t global_tid, std::string_view name);
  void NameDomain(int64_t domain_id, std::string_view name);
  // Sorts and joins; call once, after the last row.
  void Finish();

 private:
  void FindDepths();

  const NsysStrings* strings_;
  Trace trace_;
  std::unordered_map<int64_t, uint32_t> names_;  // by string id
  std::unordered_map<std::string, uint32_t> texts_;
  std::map<std::pair<int64_t, proto::ApiDomain>, uint32_t> apis_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> lanes_;
  std::unordered_map<std::string, uint32_t> shapes_;  // by their bytes
  std::unordered_map<int64_t, uint16_t> writers_, domains_;
  std::map<uint16_t, std::string> domain_names_;
};

}  // namespace ranktap::collector
