#include "tests/fakes/machine/memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/fakes/machine/device.h"

namespace ranktap::standin {
namespace {

constexpr uint64_t kGranularity = 4096;

struct AddressSpace {
  std::mutex mutex;
  std::map<uint64_t, Allocation> by_end;  // one past the last byte
  std::map<uint32_t, uint64_t> device_bytes;
};

AddressSpace& Space() {
  static AddressSpace* space = new AddressSpace;
  return *space;
}

uint64_t MappedBytes(uint64_t bytes) {
  uint64_t rounded = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  return rounded == 0 ? kGranularity : rounded;
}

bool OnDevice(const Allocation& allocation) {
  return allocation.kind == MemoryKind::kDevice || allocation.kind == MemoryKind::kDeviceStatic;
}

}  // namespace

bool Allocate(const Allocation& wanted, Allocation* made) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  uint64_t bytes = MappedBytes(wanted.bytes);
  if (bytes < wanted.bytes) return false;
  uint64_t& used = space.device_bytes[wanted.device];
  if (OnDevice(wanted) && used + bytes > DeviceMemoryBytes()) return false;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  if (OnDevice(wanted)) used += bytes;
  *made = wanted;
  made->address = reinterpret_cast<uint64_t>(mapped);
  space.by_end[made->address + bytes] = *made;
  return true;
}

bool Register(const Allocation& own) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  auto next = space.by_end.upper_bound(own.address);
  if (next != space.by_end.end() && next->second.address < own.address + own.bytes) return false;
  Allocation known = own;
  known.registered = true;
  known.kind = MemoryKind::kPinned;
  space.by_end[own.address + own.bytes] = known;
  return true;
}

bool Release(uint64_t address, Allocation* was) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  auto found = space.by_end.upper_bound(address);
  if (found == space.by_end.end() || found->second.address != address) return false;
  *was = found->second;
  space.by_end.erase(found);
  if (was->registered) return true;
  uint64_t bytes = MappedBytes(was->bytes);
  if (OnDevice(*was)) space.device_bytes[was->device] -= bytes;
  munmap(reinterpret_cast<void*>(was->address), bytes);
  return true;
}

Allocation Lookup(uint64_t address, bool* known) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  auto found = space.by_end.upper_bound(address);
  bool hit = found != space.by_end.end() && found->second.address <= address;
  if (known != nullptr) *known = hit;
  return hit ? found->second : Allocation{};
}

uint64_t BytesInUse(uint32_t device) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  return space.device_bytes[device];
}

bool TakeDeviceMemory(uint32_t device, uint64_t bytes) {
  AddressSpace& space = Space();
  std::lock_guard lock(space.mutex);
  uint64_t& used = space.device_bytes[device];
  if (used + bytes > DeviceMemoryBytes()) return false;
  used += bytes;
  return true;
}

void ReleaseContextMemory(uint32_t context_id) {
  std::vector<uint64_t> addresses;
  {
    AddressSpace& space = Space();
    std::lock_guard lock(space.mutex);
    for (const auto& [end, allocation] : space.by_end) {
      if (allocation.context_id == context_id && OnDevice(allocation)) {
        addresses.push_back(allocation.address);
      }
    }
  }
  Allocation was;
  for (uint64_t address : addresses) Release(address, &was);
}

}  // namespace ranktap::standin
