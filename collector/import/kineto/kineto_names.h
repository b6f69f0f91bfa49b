// Things that a trace holds once and events refer to by number: names, lanes, functions, launch
// shapes, collectives. A part of kineto_tables.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collector/import/interner.h"
#include "collector/import/kineto/kineto_event.h"
#include "collector/import/optional_values.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoNames {
 public:
  explicit KinetoNames(Trace* trace) : trace_(trace), names_(&trace->dictionary) {}

  uint32_t Intern(std::string_view text) { return names_.Intern(text); }
  uint32_t InternList(std::string_view text) { return names_.InternList(text); }
  uint32_t LaneOf(const KinetoEvent& event);
  uint32_t ApiOf(const KinetoEvent& event, proto::ApiDomain domain);
  uint32_t ShapeOf(const KinetoEvent& event);
  uint32_t CollectiveOf(const KinetoEvent& event);

 private:
  Trace* trace_;
  Interner names_;
  std::unordered_map<uint64_t, uint32_t> lanes_;                    // by device, context and stream
  std::unordered_map<uint64_t, uint32_t> apis_;                     // by domain and name id
  std::unordered_map<std::string, uint32_t> shapes_, collectives_;  // by the texts they came from
  std::string key_;                                                 // scratch
};

// Modules by name and by those around them on their thread: PyTorch numbers the instances of a
// class. Once the Python calls are sorted.
void NameModules(Trace* trace);

}  // namespace ranktap::collector
