// Which of NVML's readings go to a process's trace.
#include "collector/ingest/device_samples.h"

#include <gtest/gtest.h>

#include <string>

namespace ranktap::collector {
namespace {

DeviceReading ReadingOf(uint8_t byte) {
  DeviceReading reading;
  reading.uuid.fill(byte);
  reading.monotonic_raw_ns = 1000 + byte;
  return reading;
}

void AddDevice(uint32_t id, char byte, v1::Hello* hello) {
  v1::Device* const device = hello->add_devices();
  device->set_id(id);
  device->set_uuid(std::string(16, byte));
}

TEST(DeviceSamplesTest, AProcessGetsTheReadingsOfItsOwnDevicesByItsNumbers) {
  v1::Hello hello;
  AddDevice(0, '\x22', &hello);
  const v1::DeviceSamples samples = SamplesFor(hello, {ReadingOf(0x11), ReadingOf(0x22)});
  ASSERT_EQ(samples.samples_size(), 1);
  EXPECT_EQ(samples.samples(0).device(), 0u);
  EXPECT_EQ(samples.samples(0).monotonic_raw_ns(), 1000u + 0x22);
}

TEST(DeviceSamplesTest, AnAbsentReadingIsAbsentInTheSample) {
  v1::Hello hello;
  AddDevice(3, '\x11', &hello);
  DeviceReading reading = ReadingOf(0x11);
  reading.power_mw = 0;
  const v1::DeviceSamples samples = SamplesFor(hello, {reading});
  ASSERT_EQ(samples.samples_size(), 1);
  EXPECT_TRUE(samples.samples(0).has_power_mw()) << "0 is a reading";
  EXPECT_FALSE(samples.samples(0).has_temperature_c());
}

TEST(DeviceSamplesTest, AProcessThatClaimsMoreDevicesThanThereCanBeGetsNone) {
  v1::Hello hello;
  for (uint32_t id = 0; id < 256; ++id) AddDevice(id, '\x11', &hello);
  EXPECT_EQ(SamplesFor(hello, {ReadingOf(0x11)}).samples_size(), 256);
  AddDevice(256, '\x11', &hello);
  EXPECT_EQ(SamplesFor(hello, {ReadingOf(0x11)}).samples_size(), 0);
}

TEST(DeviceSamplesTest, AUuidOfAnotherLengthIsNoDevice) {
  v1::Hello hello;
  hello.add_devices()->set_uuid("\x11");
  EXPECT_EQ(SamplesFor(hello, {ReadingOf(0x11)}).samples_size(), 0);
}

}  // namespace
}  // namespace ranktap::collector
