#include "collector/export/occupancy.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace ranktap::collector {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr int kWarpRegisterUnit = 256;
constexpr int kSubPartitions = 4;

int BlocksLimit(const v1::Device& device) {
  if (device.max_blocks_per_multiprocessor() != 0) {
    return static_cast<int>(device.max_blocks_per_multiprocessor());
  }
  const uint32_t major = device.compute_major(), minor = device.compute_minor();
  if (major == 7) return minor == 5 ? 16 : 32;
  if (major == 8) return minor == 0 ? 32 : minor == 9 ? 24 : 16;
  if (major >= 11) return 24;
  return 32;
}

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int RegistersLimit(const v1::Device& device, const proto::LaunchShape& shape, int64_t warps) {
  const int64_t registers = shape.registers_per_thread;
  if (registers == 0) return INT_MAX;
  const int64_t per_warp = RoundUp(registers * device.warp_size(), kWarpRegisterUnit);
  if (per_warp * RoundUp(warps, kSubPartitions) > device.regs_per_block()) return 0;
  const int64_t per_partition = device.regs_per_multiprocessor() / kSubPartitions;
  return static_cast<int>(per_partition / per_warp * kSubPartitions / warps);
}

int SharedMemoryLimit(const v1::Device& device, const proto::LaunchShape& shape) {
  const bool reserves = device.compute_major() >= 8;
  const int64_t unit = reserves ? 128 : 256;
  const int64_t asked = int64_t{shape.static_shared_bytes} + shape.dynamic_shared_bytes;
  const int64_t reserved = reserves ? 1024 : 0;
  const int64_t used = RoundUp(asked + reserved, unit);
  const auto most = static_cast<int64_t>(device.shared_mem_per_block_optin());
  if (asked > std::max<int64_t>(most, static_cast<int64_t>(device.shared_mem_per_block())))
    return 0;
  if (used == 0) return INT_MAX;
  return static_cast<int>(static_cast<int64_t>(device.shared_mem_per_multiprocessor()) / used);
}

int64_t Threads(const proto::LaunchShape& shape) {
  return int64_t{shape.block[0]} * shape.block[1] * shape.block[2];
}

}  // namespace

int MaxActiveBlocks(const v1::Device& device, const proto::LaunchShape& shape) {
  const int64_t threads = Threads(shape);
  if (threads <= 0 || threads > device.max_threads_per_block()) return 0;
  const int64_t warps = RoundUp(threads, device.warp_size()) / device.warp_size();
  const int64_t max_warps = device.max_threads_per_multiprocessor() / device.warp_size();
  return std::min({static_cast<int>(max_warps / warps), BlocksLimit(device),
                   RegistersLimit(device, shape, warps), SharedMemoryLimit(device, shape)});
}

std::optional<Occupancy> EstimateOccupancy(const v1::Device& device,
                                           const proto::LaunchShape& shape) {
  const int64_t threads = Threads(shape);
  if (device.num_sms() == 0 || device.warp_size() == 0 || threads == 0) return std::nullopt;
  Occupancy occupancy;
  const double blocks = static_cast<double>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  occupancy.blocks_per_sm = blocks / device.num_sms();
  occupancy.warps_per_sm =
      occupancy.blocks_per_sm * static_cast<double>(threads) / device.warp_size();
  if (device.max_threads_per_multiprocessor() == 0 || device.regs_per_multiprocessor() == 0 ||
      device.shared_mem_per_multiprocessor() == 0) {
    return occupancy;
  }
  const double resident =
      std::min(occupancy.blocks_per_sm, static_cast<double>(MaxActiveBlocks(device, shape)));
  occupancy.percent = static_cast<int>(std::lround(100.0 * resident * static_cast<double>(threads) /
                                                   device.max_threads_per_multiprocessor()));
  return occupancy;
}

}  // namespace ranktap::collector
