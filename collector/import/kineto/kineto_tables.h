// Events of a Kineto trace -> rows of a Trace's tables. Knows the dialect, nothing of files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/import/interner.h"
#include "collector/import/kineto/kineto_event.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoTables {
 public:
  explicit KinetoTables(Trace* trace) : trace_(trace), names_(&trace->dictionary) {}

  // False: an event that the model has no place for (it is counted).
  bool Add(const KinetoEvent& event);
  // Sorts, joins and nests; call once, after the last event.
  void Finish();

  // Events by what was wrong with them: no time, a category nobody knows. Half an arrow is no
  // event.
  static constexpr const char* kHalfArrows = "arrows with one end";
  const std::map<std::string, uint64_t>& skipped() const { return skipped_; }
  // Behind Finish(). A profiler sees its own process: more than one process that ran operators or
  // called CUDA, or correlation ids given twice, are several ranks' traces in one file.
  std::set<std::string> Processes() const;
  bool RepeatsCorrelations() const;

 private:
  enum class Category : uint8_t;
  struct Span {
    int64_t start, end;
  };
  Category CategoryOf(std::string_view name);
  bool Skip(std::string why);
  bool SkipCategory(const KinetoEvent& event);
  bool AddSpan(const KinetoEvent& event);
  bool AddInstant(const KinetoEvent& event);
  void AddMetadata(const KinetoEvent& event);
  bool AddFlow(const KinetoEvent& event);
  bool AddCounter(const KinetoEvent& event);

  void AddOperator(const KinetoEvent& event, Span span, OperatorKind kind);
  void AddPython(const KinetoEvent& event, Span span);
  void AddCall(const KinetoEvent& event, Span span, proto::ApiDomain domain);
  void AddKernel(const KinetoEvent& event, Span span);
  void AddCopy(const KinetoEvent& event, Span span);
  void AddMemset(const KinetoEvent& event, Span span);
  void AddSync(const KinetoEvent& event, Span span);
  void AddDeviceAnnotation(const KinetoEvent& event, Span span);
  void AddOverhead(const KinetoEvent& event, Span span);
  void AddWork(const KinetoEvent& event, Span span, DeviceWork* work);

  void NameModules();

  uint16_t WriterOf(const KinetoEvent& event);
  uint32_t LaneOf(const KinetoEvent& event);
  uint32_t ApiOf(const KinetoEvent& event, proto::ApiDomain domain);
  uint32_t ShapeOf(const KinetoEvent& event);
  uint32_t CollectiveOf(const KinetoEvent& event);
  uint32_t ExternalIdOf(const KinetoEvent& event);

  Trace* trace_;
  Interner names_;
  std::map<std::string, uint64_t> skipped_;
  std::unordered_map<std::string, uint16_t> writers_;  // by "pid/tid" as written
  std::set<std::string> devices_;  // that stand as processes with calls, by pid as written
  std::string last_pid_, last_tid_;
  uint16_t last_writer_ = 0;
  bool has_last_writer_ = false;
  std::unordered_map<uint64_t, uint32_t> lanes_;                    // by device, context and stream
  std::unordered_map<uint64_t, uint32_t> apis_;                     // by domain and name id
  std::unordered_map<std::string, uint32_t> shapes_, collectives_;  // by the texts they came from
  std::unordered_map<std::string, std::string> thread_names_;       // by "pid/tid" as written
  std::unordered_map<std::string, std::string> process_names_;      // by pid as written
  std::string key_;                                                 // scratch
  struct OpenFlow {
    int64_t start = 0;
    uint16_t writer = 0;
    bool has_start = false, has_end = false;
    int64_t end = 0;
    uint16_t to_writer = 0;
  };
  std::map<std::pair<uint8_t, uint64_t>, OpenFlow> flows_;  // by kind and id
};

}  // namespace ranktap::collector
