// Events of a Kineto trace -> rows of a Trace's tables. Knows the dialect, nothing of files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "collector/import/foreign_tools.h"
#include "collector/import/kineto/kineto_arrows.h"
#include "collector/import/kineto/kineto_devices.h"
#include "collector/import/kineto/kineto_event.h"
#include "collector/import/kineto/kineto_names.h"
#include "collector/import/kineto/kineto_threads.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoTables {
 public:
  explicit KinetoTables(Trace* trace)
      : trace_(trace), names_(trace), threads_(trace), arrows_(&threads_) {}
  KinetoTables(const KinetoTables&) = delete;
  KinetoTables& operator=(const KinetoTables&) = delete;

  // False: an event that the model has no place for (it is counted).
  bool Add(const KinetoEvent& event);
  // Sorts, joins and nests; call once, after the last event.
  void Finish();

  // Events by what was wrong with them: no time, a category nobody knows. Half an arrow is not an
  // event.
  static constexpr const char* kHalfArrows = "arrows with one end";
  const std::map<std::string, uint64_t>& skipped() const { return skipped_; }
  // Behind Finish(). A profiler sees its own process: more than one process that ran operators or
  // called CUDA, or correlation ids given twice, are several ranks' traces in one file.
  std::set<std::string> Processes() const { return threads_.OfHost(); }
  bool RepeatsCorrelations() const;
  // Another profiler, by the names of its processes; nullptr: none that is known.
  const ForeignTool* tool() const { return tool_; }

 private:
  struct Span {
    int64_t start, end;
  };
  bool Skip(std::string why);
  bool SkipCategory(const KinetoEvent& event);
  bool AddSpan(const KinetoEvent& event);
  bool AddInstant(const KinetoEvent& event);
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
  void AddOverhead(Span span);
  void AddWork(const KinetoEvent& event, Span span, DeviceWork* work);

  uint32_t ExternalIdOf(const KinetoEvent& event);

  Trace* trace_;
  KinetoNames names_;
  KinetoThreads threads_;
  KinetoArrows arrows_;
  const ForeignTool* tool_ = nullptr;
  KinetoDevices devices_;
  std::map<std::string, uint64_t> skipped_;
};

}  // namespace ranktap::collector
