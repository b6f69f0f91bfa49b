// A trace of operators and of the kernels that they launched, whose counts follow by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collector/trace/model.h"

namespace ranktap::collector {

class PlantedOperators {
 public:
  explicit PlantedOperators(std::string_view device = "NVIDIA H100 80GB HBM3") {
    trace_.writers.resize(1);
    trace_.lanes = {{0, 1, 7}};
    if (device.empty()) return;
    v1::Device* const of = trace_.hello.add_devices();
    of->set_id(0);
    of->set_name(std::string(device));
  }

  // 10 us on the host each. Its row.
  uint32_t Operator(std::string_view name, std::string_view shapes, std::string_view types,
                    std::string_view values = "", uint32_t parent = kNone) {
    Operators& ops = trace_.operators;
    const auto row = static_cast<uint32_t>(ops.size());
    ops.start.push_back(10'000 * row);
    ops.end.push_back(10'000 * row + 10'000);
    ops.name.push_back(Text(name));
    ops.writer.push_back(0);
    ops.kind.push_back(0);
    ops.parent.push_back(parent);
    for (auto* const column : {&ops.shapes, &ops.types, &ops.values}) column->PadTo(row + 1);
    ops.shapes[row] = Text(shapes);
    ops.types[row] = Text(types);
    if (!values.empty()) ops.values[row] = Text(values);
    return row;
  }

  // After the one before; kNone: of no operator.
  void Kernel(std::string_view name, uint32_t op, int64_t ns) {
    Kernels& kernels = trace_.kernels;
    Begin(&kernels, op, ns);
    kernels.name.push_back(Text(name));
    kernels.shape.push_back(0);
  }
  void Copy(uint8_t kind, uint64_t bytes, uint32_t op, int64_t ns) {
    Copies& copies = trace_.copies;
    Begin(&copies, op, ns);
    copies.bytes.push_back(bytes);
    copies.copy_kind.push_back(kind);
    copies.src_kind.push_back(0);
    copies.dst_kind.push_back(0);
  }

  // A launch's row of api_calls.
  uint32_t DriverCall(std::string_view name) {
    ApiCalls& calls = trace_.api_calls;
    calls.start.push_back(now_);
    calls.end.push_back(now_ + 1);
    calls.correlation.push_back(1);
    calls.api.push_back(trace_.dictionary.AppendApi(
        {.domain = proto::ApiDomain::kDriver, .name = std::string(name)}));
    calls.writer.push_back(0);
    return static_cast<uint32_t>(calls.size()) - 1;
  }

  Trace& trace() { return trace_; }

 private:
  uint32_t Text(std::string_view text) { return trace_.dictionary.AppendString(text); }
  void Begin(DeviceWork* work, uint32_t op, int64_t ns) {
    work->start.push_back(now_);
    work->end.push_back(now_ += ns);
    work->lane.push_back(0);
    work->correlation.push_back(static_cast<uint32_t>(work->size()));
    work->launch.push_back(kNone);
    work->op.PadTo(work->size());
    if (op != kNone) work->op[work->size() - 1] = op + 1;
  }

  Trace trace_;
  int64_t now_ = 1'000'000'000;
};

}  // namespace ranktap::collector
