// Marks of the tensors of operators.
// Runs on: threads that run operators.  May not: allocate, lock, wait.
#include "agent/sources/torch/torch_tensors.h"

#include <atomic>

#include "proto/events.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {
namespace {

constexpr uint64_t kAddresses = uint64_t{1} << proto::kTensorElementShift;

constinit std::atomic<uint64_t> g_left_out{0};

// The beginning of the memory of a tensor's storage; 0: it has none, or there is nothing in it.
uint64_t MemoryOf(const TorchLayout& layout, uint64_t tensor) {
  const auto storage =
      ReadTorch<uint64_t>(reinterpret_cast<const std::byte*>(tensor), layout.storage);
  if (storage == 0) return 0;
  return ReadTorch<uint64_t>(reinterpret_cast<const std::byte*>(storage), layout.data);
}

struct Emitter {
  ThreadState& thread;
  const TorchLayout& layout;
  uint64_t side;
  proto::ArenaRef domain;
  uint64_t ticks;
  uint64_t left_out = 0;

  void Add(uint64_t tensor, uint64_t place, uint64_t element) {
    const uint64_t memory = MemoryOf(layout, tensor);
    if (memory == 0) return;
    if (place >= proto::kMostTensorPlaces || element >= proto::kMostTensorElements ||
        tensor >= kAddresses) {
      ++left_out;
      return;
    }
    thread.Emit(proto::MarkEvent{.time_ticks = ticks,
                                 .nvtx = {.domain = domain,
                                          .payload = side | place << proto::kTensorPlaceShift |
                                                     element << proto::kTensorElementShift | tensor,
                                          .category = static_cast<uint32_t>(memory),
                                          .color = static_cast<uint32_t>(memory >> 32),
                                          .payload_type = proto::kTensorPayload}});
  }
};

}  // namespace

void EmitTensors(ThreadState& thread, const TorchInputs& values, TensorSide side,
                 proto::ArenaRef domain, uint64_t ticks) {
  const TorchLayout& layout = *values.layout;
  Emitter emitter{thread, layout, side == TensorSide::kOutput ? proto::kTensorIsOutput : 0, domain,
                  ticks};
  for (size_t place = 0; place < values.count; ++place) {
    const TorchValue value{values.values + place * kIValueBytes};
    const uint32_t tag = value.tag();
    if (tag == layout.tensor) emitter.Add(value.payload(), place, 0);
    if (tag != layout.generic_list) continue;
    const auto elements = ElementsOf(layout, value.payload());
    for (size_t at = 0; at < elements.size(); at += kIValueBytes) {
      const TorchValue element{elements.data() + at};
      if (element.tag() == layout.tensor) emitter.Add(element.payload(), place, at / kIValueBytes);
    }
  }
  if (emitter.left_out != 0) [[unlikely]]
    g_left_out.fetch_add(emitter.left_out, std::memory_order_relaxed);
}

std::string TakeTensorsLeftOut() {
  const uint64_t left_out = g_left_out.exchange(0);
  if (left_out == 0) return {};
  return std::to_string(left_out) + " tensors of operators with more than " +
         std::to_string(proto::kMostTensorPlaces) + " inputs, or lists of more than " +
         std::to_string(proto::kMostTensorElements) +
         ", are missing in a window: there are no arrows to and from these";
}

}  // namespace ranktap::agent
