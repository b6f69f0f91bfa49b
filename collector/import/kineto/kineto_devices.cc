#include "collector/import/kineto/kineto_devices.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "collector/trace/device_label.h"

namespace ranktap::collector {

void KinetoDevices::Note(const KinetoEvent& event) {
  std::string_view& word = word_;
  if (!word.empty()) return;
  if (event.phase == 'X') {
    if (event.category.starts_with("mtia_")) word = "MTIA";
    if (event.category.starts_with("xpu_")) word = "XPU";
  } else if (event.name == "process_labels") {
    const std::string_view label = event.text(Arg::kLabels);
    const std::string_view first = label.substr(0, std::min(label.find(' '), label.size()));
    for (const std::string_view known : kDeviceWords) {
      if (first == known) word = known;
    }
  } else if (event.name == "[memory]") {
    constexpr uint64_t kXpu = 12, kHpu = 15, kMtia = 19;
    const uint64_t type = event.number(Arg::kDeviceType);
    if (type == kXpu) word = "XPU";
    if (type == kHpu) word = "HPU";
    if (type == kMtia) word = "MTIA";
  }
}

void KinetoDevices::NameIn(Trace* trace) const {
  if (word_.empty() || trace->hello.devices_size() > 0) return;
  std::set<uint32_t> devices;
  for (const Lane& lane : trace->lanes) devices.insert(lane.device);
  const Allocations& all = trace->allocations;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.device_type.At(i) != 0 && all.device.At(i) != 0) devices.insert(all.device.At(i) - 1u);
  }
  for (const uint32_t id : devices) {
    v1::Device* const device = trace->hello.add_devices();
    device->set_id(id);
    device->set_name(std::string(word_));
  }
}

}  // namespace ranktap::collector
