// Points of a roofline whose times, FLOPs and bytes follow by hand, and what is said of them.
#include "collector/facts/roofline/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "collector/facts/roofline/list_types.h"
#include "collector/facts/roofline/roofline_rows.h"
#include "collector/trace/device_counters.h"
#include "tests/unit/collector/facts/roofline/planted_operators.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kTwoBf16 = R"(["c10::BFloat16", "c10::BFloat16"])";
constexpr std::string_view kTwoFloats = R"(["float", "float"])";
constexpr std::string_view kSquare = "[[8192, 8192], [8192, 8192]]";
constexpr int64_t kProduct = 1'099'511'627'776;  // 2 * 8192^3
constexpr std::string_view kTensorCores = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN";

// The only trace of a run goes in and comes back.
RooflineRows Rows(PlantedOperators* planted, RooflineQuestion question = {}) {
  Run run;
  run.traces.push_back(std::move(planted->trace()));
  RooflineRows rows = SummarizeRoofline(run, question);
  planted->trace() = std::move(run.traces[0]);
  return rows;
}
RooflineRow Only(PlantedOperators* planted, RooflineQuestion question = {}) {
  RooflineRows rows = Rows(planted, std::move(question));
  EXPECT_EQ(rows.rows.size(), 1u);
  return rows.rows.empty() ? RooflineRow() : rows.rows[0];
}

TEST(RooflineTest, AProductOnTensorCoresIsMeasuredByTheirRoof) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 2'000'000);
  const RooflineRow row = Only(&planted);
  EXPECT_EQ(row.flops, kProduct);
  EXPECT_EQ(row.flops_of[static_cast<size_t>(FlopKind::kBf16)], kProduct);
  EXPECT_EQ(row.bytes(), int64_t{3} * 8192 * 8192 * 2);
  EXPECT_EQ(row.units, 1u << static_cast<unsigned>(ComputeUnit::kHalfTensor));
  EXPECT_FALSE(row.unit_unsaid);
  EXPECT_EQ(row.Bound(), RoofBound::kCompute);
  const double least = kProduct / 989.4e12 * 1e9;
  EXPECT_NEAR(row.least_ns, least, 1);
  EXPECT_NEAR(*row.PercentOfRoof(), 100 * least / 2e6, 1e-6);
  EXPECT_NEAR(row.saved_ns, 2e6 - least, 1);
  EXPECT_NEAR(*row.Attained(), kProduct / 2e-3, 1e3);
  EXPECT_NEAR(*row.Roof(), 989.4e12, 1e6);
  EXPECT_NEAR(*row.Intensity(), 8192.0 / 3, 1e-6);
}

TEST(RooflineTest, TheKernelsNameTellsTf32FromFp32) {
  PlantedOperators planted("NVIDIA A100-SXM4-40GB");
  const uint32_t with = planted.Operator("aten::mm", kSquare, kTwoFloats);
  planted.Kernel("cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4", with, 10'000'000);
  const uint32_t without = planted.Operator("aten::mm", kSquare, kTwoFloats);
  planted.Kernel("ampere_sgemm_128x64_nn", without, 60'000'000);
  const Roofline& line = MeasureRoofline(planted.trace());
  ASSERT_EQ(line.points.size(), 2u);
  EXPECT_EQ(line.points[0].unit.unit, ComputeUnit::kTf32);
  EXPECT_EQ(line.points[1].unit.unit, ComputeUnit::kFp32);
  EXPECT_EQ(line.points[1].unit.known, UnitKnown::kByKernel);
  const RooflineRow row = Only(&planted);
  EXPECT_NEAR(row.least_ns, kProduct / 156e12 * 1e9 + kProduct / 19.5e12 * 1e9, 2);
  EXPECT_EQ(row.flops_of[static_cast<size_t>(FlopKind::kTf32)], kProduct);
  EXPECT_EQ(row.flops_of[static_cast<size_t>(FlopKind::kFp32)], kProduct);
}

TEST(RooflineTest, ElementwiseWorkIsBoundByTheMemory) {
  PlantedOperators planted;
  const uint32_t add = planted.Operator("aten::add", kSquare, kTwoFloats);
  planted.Kernel("vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>", add, 300'000);
  const RooflineRow row = Only(&planted);
  const double bytes = 12.0 * 8192 * 8192;
  EXPECT_EQ(row.Bound(), RoofBound::kMemory);
  EXPECT_EQ(*row.Intensity(), 0);
  EXPECT_NEAR(row.least_ns, bytes / 3352e9 * 1e9, 1);
  EXPECT_NEAR(*row.AttainedBandwidth(), bytes / 300e-6, 1e3);
  EXPECT_FALSE(row.Roof());  // no FLOPs
}

TEST(RooflineTest, WorkThatIsTooSmallIsBoundByLatency) {
  PlantedOperators planted;
  const uint32_t add = planted.Operator("aten::add", "[[64], [64]]", kTwoFloats);
  planted.Kernel("vectorized_elementwise_kernel<4>", add, 1'800);
  EXPECT_EQ(Only(&planted).Bound(), RoofBound::kLatency);
}

TEST(RooflineTest, APointAboveItsRoofIsFlaggedAndSavesNothing) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 500'000);  // 2.2 PFLOP/s
  const RooflineRow row = Only(&planted);
  EXPECT_EQ(row.above, 1);
  EXPECT_GT(*row.PercentOfRoof(), 200);
  EXPECT_EQ(row.saved_ns, 0);
}

TEST(RooflineTest, WhatIsFasterThanTheMemoryAndFitsTheCacheCameFromThere) {
  PlantedOperators planted;
  const uint32_t add = planted.Operator("aten::add", "[[1024, 1024], [1024, 1024]]", kTwoFloats);
  planted.Kernel("vectorized_elementwise_kernel<4>", add, 3'000);  // 4.2 TB/s, 12 MiB
  const RooflineRow row = Only(&planted);
  EXPECT_EQ(row.above, 1);
  EXPECT_EQ(row.Bound(), RoofBound::kL2);
}

TEST(RooflineTest, KernelsWithoutACountedOperatorStandUnderWhatIsAround) {
  PlantedOperators planted;
  const uint32_t own = planted.Operator("mine::attention", kSquare, kTwoBf16);
  planted.Kernel("my_attention", own, 1'000);
  planted.Kernel("nobody_s", kNone, 3'000);
  const RooflineRows rows = Rows(&planted);
  ASSERT_EQ(rows.rows.size(), 2u);
  EXPECT_EQ(rows.rows[0].name, "(kernels of no operator)");
  EXPECT_EQ(rows.rows[1].name, "mine::attention");
  for (const RooflineRow& row : rows.rows) {
    EXPECT_EQ(row.Bound(), RoofBound::kUnknown);
    EXPECT_EQ(row.flops + row.bytes() + row.counted_ns, 0);
    EXPECT_FALSE(row.PercentOfRoof());
    EXPECT_FALSE(row.Intensity());
  }
}

TEST(RooflineTest, AKernelsRateAndItsShareOfTheRoofAreOfTheSameTime) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 2'000'000);
  planted.Kernel(kTensorCores, kNone, 1'000'000);  // nobody knows what it multiplied
  const RooflineRow row = Only(&planted, {.by = RooflineBy::kKernel});
  EXPECT_EQ(row.time_ns, 3'000'000);
  EXPECT_NEAR(*row.Attained(), kProduct / 2e-3, 1e3);
  EXPECT_NEAR(*row.PercentOfRoof(), 100 * *row.Attained() / *row.Roof(), 1e-6);
  EXPECT_NEAR(*row.AttainedBandwidth(), 3.0 * 8192 * 8192 * 2 / 2e-3, 1e3);
}

TEST(RooflineTest, AnOperatorInsideOfACountedOneIsNotCountedAgain) {
  PlantedOperators planted;
  const uint32_t outer = planted.Operator(
      "aten::convolution", "[[2, 8, 9, 9], [8, 8, 3, 3], [8]]", R"(["float", "float", "float"])",
      R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])");
  const uint32_t inner = planted.Operator("aten::cudnn_convolution", "[[2, 8, 9, 9], [8, 8, 3, 3]]",
                                          kTwoFloats, "", outer);
  planted.Operator("aten::add_", "[[2, 8, 9, 9], [1, 8, 1, 1]]", kTwoFloats, "", outer);
  planted.Kernel("nchwToNhwcKernel<float>", inner, 1'000);
  planted.Kernel("implicit_convolve_sgemm<float>", inner, 9'000);
  const RooflineRow row = Only(&planted);
  EXPECT_EQ(row.name, "aten::convolution");
  EXPECT_EQ(row.flops, 2 * 2 * 81 * 8 * 8 * 9);
  EXPECT_EQ(row.bytes(), 4 * (2 * 2 * 8 * 81 + 8 * 8 * 9 + 8));
  EXPECT_EQ(row.time_ns, 10'000);
  // By kernel: the one that computes has all of it, the layout's none.
  const RooflineRows kernels = Rows(&planted, {.by = RooflineBy::kKernel});
  ASSERT_EQ(kernels.rows.size(), 2u);
  EXPECT_EQ(kernels.rows[0].flops, row.flops);
  EXPECT_EQ(kernels.rows[0].bytes(), row.bytes());
  EXPECT_EQ(kernels.rows[1].flops + kernels.rows[1].bytes(), 0);
  EXPECT_EQ(kernels.rows[1].Bound(), RoofBound::kExtra);
}

// 1,099 GFLOP at 989 TFLOP/s: 1.111 ms of the 2 ms of the product; the bias's 0.5 ms stay.
TEST(RooflineTest, AProductSavesAtMostWhatItsBytesAndItsBiasLeave) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::addmm", "[[8192], [8192, 8192], [8192, 8192]]",
                                       R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])");
  planted.Kernel(kTensorCores, mm, 2'000'000);
  planted.Kernel("vectorized_elementwise_kernel<4, add>", mm, 500'000);
  const double least = kProduct / 989.4e12 * 1e9;
  EXPECT_NEAR(Only(&planted).saved_ns, 2e6 - least, 1);
  for (const RooflineRow& row : Rows(&planted, {.by = RooflineBy::kKernel}).rows) {
    EXPECT_NEAR(row.saved_ns, row.flops > 0 ? 2e6 - least : 0, 1) << row.name;
  }
  // A vector by a matrix: 134 MB at 3,352 GB/s need 40 us, and 134 MFLOP next to nothing.
  PlantedOperators bytes;
  const uint32_t mv = bytes.Operator("aten::mm", "[[1, 8192], [8192, 8192]]", kTwoBf16);
  bytes.Kernel(kTensorCores, mv, 100'000);
  EXPECT_NEAR(Only(&bytes).saved_ns, 1e5 - 2.0 * (8192 * 8192 + 2 * 8192) / 3352e9 * 1e9, 1);
}

// Of two inputs the type of one is not recorded.
TEST(RooflineTest, WithoutAllBytesNothingIsBoundAndNothingSaved) {
  for (const std::string_view types : {R"(["c10::BFloat16", ""])", R"(["c10::BFloat16"])"}) {
    PlantedOperators planted;
    const uint32_t mm = planted.Operator("aten::mm", kSquare, types);
    planted.Kernel(kTensorCores, mm, 2'000'000);
    const RooflineRow row = Only(&planted);
    EXPECT_EQ(row.flops, kProduct);
    EXPECT_EQ(row.Bound(), RoofBound::kUnknown) << types;
    EXPECT_FALSE(row.Intensity());
    EXPECT_EQ(row.saved_ns, 0);
  }
}

TEST(RooflineTest, WhatSumsInFloatsIsMeasuredByTheTypeThatItMultiplies) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel("void gemmSN_NN_kernel<float, 128, 2, 4, 8, 6, 4, false>", mm, 2'000'000);
  const RooflineRow row = Only(&planted);
  EXPECT_NEAR(*row.Roof(), 989.4e12, 1e6);
  EXPECT_TRUE(row.unit_unsaid);
}

TEST(RooflineTest, WhatInductorFusesAfterAProductIsNone) {
  EXPECT_FALSE(MathOfKernel("triton_poi_fused_add_mm_3").computes());
  EXPECT_FALSE(MathOfKernel("triton_red_fused_mm_sum_0").computes());
  EXPECT_TRUE(MathOfKernel("triton_tem_fused_mm_0").computes());
}

// DTensor's product of 8192 x 8192 by 8192 x 8192 runs an eighth of it on each device, and autocast
// multiplies in 16 bits what it got in 32.
TEST(RooflineTest, AnOperatorThatIsDispatchedTwiceCountsByTheInnerRecord) {
  PlantedOperators planted;
  const uint32_t outer = planted.Operator("aten::mm", kSquare, kTwoFloats);
  planted.Operator("aten::_to_copy", "[[8192, 8192]]", R"(["float"])", "", outer);
  const uint32_t inner =
      planted.Operator("aten::mm", "[[8192, 8192], [8192, 1024]]", kTwoBf16, "", outer);
  planted.trace().operators.name[inner] = planted.trace().operators.name[outer];
  planted.Kernel(kTensorCores, inner, 200'000);
  const RooflineRow row = Rows(&planted).rows.at(0);
  EXPECT_EQ(row.name, "aten::mm");
  EXPECT_EQ(row.calls, 1);
  EXPECT_EQ(row.flops, kProduct / 8);
  EXPECT_EQ(row.bytes(), int64_t{2} * (8192 * 8192 + 2 * 8192 * 1024));
  EXPECT_NEAR(*row.PercentOfRoof(), 100 * (kProduct / 8 / 989.4e12) / 200e-6, 1e-3);
  EXPECT_EQ(row.above, 0);
}

TEST(RooflineTest, ABoardOfAmdsHasItsRoofs) {
  PlantedOperators planted("AMD Instinct MI300X");
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel("Cijk_Alik_Bljk_BBS_BH_MT256x256x64", mm, 2'000'000);
  const RooflineRow row = Only(&planted);
  EXPECT_EQ(row.Bound(), RoofBound::kCompute);
  EXPECT_NEAR(row.least_ns, kProduct / 1307.4e12 * 1e9, 1);
}

TEST(RooflineTest, KernelsThatComputeShareByTheirTimesAndNothingIsLost) {
  PlantedOperators planted;
  const uint32_t backward = planted.Operator(
      "aten::convolution_backward", "[[2, 8, 9, 9], [2, 8, 9, 9], [8, 8, 3, 3]]",
      R"(["float", "float", "float"])",
      R"(["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"])");
  planted.Kernel("cudnn_dgrad_sgemm", backward, 1'000);
  planted.Kernel("cudnn_wgrad_sgemm", backward, 2'000);
  const RooflineRow whole = Only(&planted);
  const RooflineRows kernels = Rows(&planted, {.by = RooflineBy::kKernel});
  ASSERT_EQ(kernels.rows.size(), 2u);
  EXPECT_EQ(kernels.rows[0].flops + kernels.rows[1].flops, whole.flops);
  EXPECT_EQ(kernels.rows[0].bytes() + kernels.rows[1].bytes(), whole.bytes());
  EXPECT_NEAR(kernels.rows[0].least_ns + kernels.rows[1].least_ns, whole.least_ns, 1e-6);
  EXPECT_NEAR(static_cast<double>(kernels.rows[0].flops), 2.0 / 3 * whole.flops, 1);
}

TEST(RooflineTest, CopiesToTheHostHaveNoRoofAndThoseOnTheDeviceHaveItsMemorys) {
  PlantedOperators planted;
  const uint32_t copy = planted.Operator("aten::copy_", kSquare, kTwoFloats);
  planted.Copy(2, 4 * 8192 * 8192, copy, 10'000'000);
  planted.Copy(8, 1 << 30, kNone, 1'000'000);
  const RooflineRows rows = Rows(&planted);
  ASSERT_EQ(rows.rows.size(), 2u);
  EXPECT_EQ(rows.rows[0].Bound(), RoofBound::kTransfer);
  EXPECT_EQ(rows.rows[0].counted_ns, 0);
  EXPECT_EQ(rows.rows[1].name, "(copies of no operator)");
  EXPECT_EQ(rows.rows[1].bytes(), int64_t{2} << 30);
  EXPECT_EQ(rows.rows[1].Bound(), RoofBound::kMemory);
}

TEST(RooflineTest, ACpuRunHasBytesAndNoTimesAndAskedForADeviceItsLeast) {
  PlantedOperators planted("");
  planted.trace().lanes.clear();
  planted.Operator("aten::mm", kSquare, kTwoFloats);
  RooflineRow row = Only(&planted);
  EXPECT_EQ(row.flops, kProduct);
  EXPECT_EQ(row.Bound(), RoofBound::kUnknown);
  EXPECT_EQ(row.least_ns, 0);
  row = Only(&planted, {.roofs = {.device = "1080 Ti"}});
  EXPECT_EQ(row.Bound(), RoofBound::kCompute);
  EXPECT_NEAR(row.least_ns, kProduct / 11.3e12 * 1e9, 1);
  EXPECT_FALSE(row.PercentOfRoof());
  row = Only(&planted, {.roofs = {.peak_flops = 1e12, .peak_bandwidth = 1e9}});
  EXPECT_NEAR(row.least_ns, kProduct / 1e12 * 1e9, 1);
}

TEST(RooflineTest, TimesOfOneDeviceSayNothingOfAnother) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 2'000'000);
  const RooflineRows rows = Rows(&planted, {.roofs = {.device = "1080 Ti"}});
  EXPECT_FALSE(rows.is_where_it_ran);
  EXPECT_FALSE(rows.rows[0].PercentOfRoof());
  EXPECT_EQ(rows.rows[0].saved_ns, 0);
  // No tensor cores there, and 16-bit floats are slower than 32-bit ones.
  EXPECT_NEAR(rows.rows[0].least_ns, kProduct / 11.3e12 * 1e9, 1);
}

TEST(RooflineTest, TheMeasuredClockLowersTheRoofOfArithmetic) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 2'000'000);
  CounterSamples& counters = planted.trace().counters;
  const uint32_t name = planted.trace().dictionary.AppendString(
      kDeviceCounters[static_cast<size_t>(DeviceCounter::kSmClock)]);
  for (const double mhz : {900.0, 930.0}) {
    counters.start.push_back(0);
    counters.end.push_back(0);
    counters.name.push_back(name);
    counters.device.push_back(0);
    counters.value.push_back(mhz);
  }
  const RooflineRow row = Only(&planted);
  EXPECT_NEAR(*row.PercentAtMeasured(), 2 * *row.PercentOfRoof(), 1e-6);  // 915 of 1830 MHz
  EXPECT_FALSE(row.PercentAtBase());  // no paper says the base clock
}

TEST(RooflineTest, WhatIsUnknownOfADeviceOrATypeHasNoRoof) {
  PlantedOperators other("NVIDIA Future 9000");
  const uint32_t mm = other.Operator("aten::mm", kSquare, kTwoBf16);
  other.Kernel(kTensorCores, mm, 2'000'000);
  EXPECT_EQ(Only(&other).Bound(), RoofBound::kUnknown);
  EXPECT_EQ(Only(&other).least_ns, 0);

  PlantedOperators types;
  const uint32_t odd = types.Operator("aten::mm", kSquare, R"(["posit16", "posit16"])");
  types.Kernel(kTensorCores, odd, 2'000'000);
  const RooflineRow row = Only(&types);
  EXPECT_EQ(row.flops_of[static_cast<size_t>(FlopKind::kOther)], kProduct);
  EXPECT_EQ(row.bytes(), 0);
  EXPECT_EQ(row.Bound(), RoofBound::kUnknown);
  EXPECT_FALSE(row.PercentOfRoof());
}

TEST(RooflineTest, WhatCountsWithoutOperatorsIsMeasuredWithoutKernels) {
  PlantedOperators planted;
  planted.Kernel("gemm", kNone, 2'000);
  planted.Copy(/*kind=device to device*/ 8, 4'000, kNone, 1'000);
  const Roofline& counted = MeasureCounted(planted.trace());
  ASSERT_EQ(counted.points.size(), 1u);
  EXPECT_EQ(counted.points[0].kind, PointKind::kCounted);
  EXPECT_EQ(counted.points[0].bytes.total(), 8'000);
  EXPECT_EQ(counted.points[0].time_ns, 1'000);
  ASSERT_EQ(counted.points[0].works, 1u);
  EXPECT_EQ(counted.work[0].span, 1u);
  EXPECT_TRUE(counted.on_device);
  EXPECT_EQ(MeasureRoofline(planted.trace()).points.size(), 2u);
}

TEST(RooflineTest, WithAnOperatorWhatCountsIsTheWholeRoofline) {
  PlantedOperators planted;
  planted.Kernel(kTensorCores, planted.Operator("aten::mm", kSquare, kTwoBf16), 2'000'000);
  EXPECT_EQ(&MeasureCounted(planted.trace()), &MeasureRoofline(planted.trace()));
}

TEST(RooflineTest, WithoutShapesNothingIsCountedAndItIsSaid) {
  PlantedOperators planted;
  const uint32_t add = planted.Operator("aten::add", "", "");
  planted.Kernel("vectorized_elementwise_kernel<4>", add, 1'000);
  EXPECT_EQ(MeasureRoofline(planted.trace()).no_shapes, 1);
  EXPECT_EQ(Only(&planted).counted_ns, 0);
}

TEST(RooflineTest, ListsHaveTheTypeThatTheirKernelsName) {
  EXPECT_EQ(ListElementBytes("CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3>"),
            2);
  EXPECT_EQ(ListElementBytes("multi_tensor_apply_kernel<TensorListMetadata<2>, "
                             "BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>>"),
            4);
  EXPECT_EQ(ListElementBytes("multi_tensor_apply_kernel<TensorListMetadata<2>, "
                             "CopyFunctor<float, c10::Half, 2, 1, 1>>"),
            0);
  PlantedOperators planted;
  const uint32_t cat = planted.Operator("aten::cat", "[[[1024, 1024], [1024, 1024]], []]",
                                        R"(["TensorList", "Scalar"])");
  planted.Kernel("CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3>", cat, 10'000);
  EXPECT_EQ(Only(&planted).bytes(), int64_t{2} * 2 * 2 * 1024 * 1024);
}

TEST(RooflineTest, ModulesAreCutBelowTheRoot) {
  PlantedOperators planted;
  const uint32_t mm = planted.Operator("aten::mm", kSquare, kTwoBf16);
  planted.Kernel(kTensorCores, mm, 2'000'000);
  EXPECT_EQ(Only(&planted, {.by = RooflineBy::kModule, .depth = 1}).name, "(in no module)");
  EXPECT_EQ(Only(&planted, {.by = RooflineBy::kPhase}).name, "forward");
  EXPECT_EQ(Only(&planted, {.by = RooflineBy::kStep}).name, "(outside of steps)");
}

// 200 GFLOP/s of all cores, 10 GB/s, and a cache of 32 MiB.
std::shared_ptr<const HostRoofs> MeasuredHost() {
  HostRoofs roofs;
  roofs.host = "box";
  roofs.processor = "CPU";
  roofs.cores = 2;
  roofs.cache_bytes = 32 << 20;
  roofs.arithmetic = {{"fp32", "FMA", {120e9, 1}, {200e9, 1}}};
  roofs.levels = {{"L1", 1 << 14, {500e9, 1}, {900e9, 1}},
                  {"memory", 1 << 28, {8e9, 1}, {10e9, 1}}};
  return std::make_shared<const HostRoofs>(std::move(roofs));
}

TEST(RooflineTest, AnOperatorOfACpuJobIsMeasuredByItsHostsRoofsOnceSomebodyCalibratedIt) {
  struct Case {
    std::string_view shapes;
    RoofBound bound;
    double least_ns;
  };
  // Each takes 10 us. 1e6 FLOPs are 5 us and 80 kB are 8 us; 2e6 FLOPs are 10 us and 120 kB are
  // 12 us, from the cache; the last has nothing to do.
  const Case cases[] = {{"[[100, 100], [100, 50]]", RoofBound::kMemory, 8000},
                        {"[[100, 100], [100, 100]]", RoofBound::kL2, 12'000},
                        {"[[4, 4], [4, 4]]", RoofBound::kLatency, 19.2}};
  for (const Case& one : cases) {
    PlantedOperators planted("");
    planted.trace().lanes.clear();
    planted.Operator("aten::mm", one.shapes, kTwoFloats);
    const RooflineRow before = Only(&planted);
    EXPECT_EQ(before.time_ns, 0) << "nobody knows its roofs";
    EXPECT_EQ(before.Bound(), RoofBound::kUnknown);
    planted.trace().memo.Reset();
    KnowHost(MeasuredHost(), planted.trace());
    const RooflineRows rows = Rows(&planted);
    EXPECT_TRUE(rows.on_host);
    EXPECT_EQ(rows.roofs.at(0).name, "CPU, 2 cores");
    const RooflineRow& row = rows.rows.at(0);
    EXPECT_EQ(row.time_ns, 10'000);
    EXPECT_EQ(row.Bound(), one.bound) << one.shapes;
    EXPECT_NEAR(row.least_ns, one.least_ns, 1) << one.shapes;
    EXPECT_NEAR(*row.PercentOfRoof(), one.least_ns / 100, 0.1);
    // Another device is asked for: what the host took says nothing of it.
    PlantedOperators other("");
    other.trace().lanes.clear();
    other.Operator("aten::mm", one.shapes, kTwoFloats);
    KnowHost(MeasuredHost(), other.trace());
    EXPECT_FALSE(Rows(&other, {.roofs = {.device = "A100 80GB"}}).on_host);
  }
}

TEST(RooflineTest, ACpuOperatorHasTheRoofOfTheSmallestCacheThatHoldsWhatItMoves) {
  HostRoofs roofs = *MeasuredHost();
  roofs.cache_bytes = 1 << 20;
  // Of two cores: 64 KiB and 1 MiB.
  roofs.levels = {{"L1", 1 << 12, {500e9, 1}, {900e9, 1}},
                  {"L2", 1 << 14, {50e9, 1}, {100e9, 1}},
                  {"L3", 1 << 18, {20e9, 1}, {40e9, 1}},
                  {"memory", 1 << 28, {8e9, 1}, {10e9, 1}}};
  // A relu reads and writes four bytes each of so many.
  const auto judged = [&roofs](std::string_view shapes) {
    PlantedOperators planted("");
    planted.trace().lanes.clear();
    planted.Operator("aten::relu", shapes, R"(["float"])");
    KnowHost(std::make_shared<const HostRoofs>(roofs), planted.trace());
    return Only(&planted);
  };
  EXPECT_NEAR(judged("[[8192]]").least_ns, 655.36, 1) << "64 KiB at 100 GB/s";
  EXPECT_NEAR(judged("[[8200]]").least_ns, 1640, 1) << "at 40 GB/s";
  EXPECT_NEAR(judged("[[131080]]").least_ns, 104'864, 1) << "at 10 GB/s";
  EXPECT_EQ(judged("[[50000]]").Bound(), RoofBound::kL2);
  EXPECT_EQ(judged("[[131080]]").Bound(), RoofBound::kMemory);
}

// A board that gives 100 GFLOP/s in fp32 and 10 GB/s, and less than its tensor cores can.
std::shared_ptr<const std::vector<DeviceRoofs>> MeasuredBoard(std::string uuid) {
  DeviceRoofs roofs;
  roofs.name = "NVIDIA H100 80GB HBM3";
  roofs.uuid = std::move(uuid);
  roofs.date = "2026-11-26T20:00:00Z";
  roofs.arithmetic = {{"fp32", "FMA", {100e9, 1}, 1000, false},
                      {"fp16 tensor", "mma.sync", {1e9, 1}, 1000, true},
                      {"tf32", "wgmma", {}, 0, false}};
  roofs.bandwidths = {{"L2", 1 << 20, {50e9, 1}}, {"memory", 1 << 28, {10e9, 1}}};
  return std::make_shared<const std::vector<DeviceRoofs>>(std::vector{std::move(roofs)});
}

TEST(RooflineTest, ABoardThatWasMeasuredHasItsOwnRoofsBeforeItsDataSheets) {
  const auto judged = [](const std::string& uuid, const RooflineQuestion& question) {
    PlantedOperators planted;
    planted.trace().hello.mutable_devices(0)->set_uuid(std::string(15, '\0') + "\x01");
    const uint32_t mm = planted.Operator("aten::mm", "[[100, 100], [100, 50]]", kTwoFloats);
    planted.Kernel("sgemm", mm, 40'000);
    KnowDevices(MeasuredBoard(uuid), planted.trace());
    return Rows(&planted, question);
  };
  const std::string own = std::string(30, '0') + "01", other = std::string(30, '0') + "02";
  // 1e6 FLOPs, and 80 kB in 8 us.
  const RooflineRows measured = judged(own, {});
  EXPECT_NEAR(measured.rows.at(0).least_ns, 10'000, 1);
  EXPECT_NEAR(*measured.rows.at(0).PercentOfRoof(), 25, 0.1);
  EXPECT_EQ(measured.rows.at(0).Bound(), RoofBound::kCompute);
  EXPECT_LT(judged(other, {}).rows.at(0).least_ns, 100) << "another board of the same model";
  EXPECT_NEAR(judged(own, {.roofs = {.peak_flops = 50e9}}).rows.at(0).least_ns, 20'000, 1);
  EXPECT_LT(judged(own, {.roofs = {.device = "H100 SXM"}}).rows.at(0).least_ns, 100);
  const Roofs& roofs = measured.roofs.at(0);
  ASSERT_NE(roofs.calibrated, nullptr);
  EXPECT_TRUE(roofs.calibrated->has(ComputeUnit::kFp32));
  // A lower bound is no roof, and a figure that nobody has is none.
  for (const ComputeUnit unit : {ComputeUnit::kHalfTensor, ComputeUnit::kTf32}) {
    EXPECT_FALSE(roofs.calibrated->has(unit));
    EXPECT_GT(roofs.Flops({UnitKnown::kByKernel, unit}), 1e14) << "the data sheet's";
  }
  EXPECT_EQ(roofs.device->l2_bandwidth_gb, 50);
  EXPECT_THAT(std::string(roofs.device->source),
              testing::StartsWith("measured by ranktap calibrate, 2026-11-26; what it has not: "));
}

TEST(RooflineTest, ABoardWithoutAMeasuredMemoryKeepsTheBandwidthThatCuptiSaid) {
  PlantedOperators planted("A board of no table");
  planted.trace().hello.mutable_devices(0)->set_memory_bandwidth(1'000'000);  // kB/s
  DeviceRoofs roofs;
  roofs.name = "A board of no table";
  roofs.arithmetic = {{"fp32", "FMA", {100e9, 1}, 1000, false}};
  KnowDevices(std::make_shared<const std::vector<DeviceRoofs>>(std::vector{roofs}),
              planted.trace());
  const RoofsOfTrace of(planted.trace(), {});
  EXPECT_EQ(of.Of(0).Flops({UnitKnown::kUnsaid, ComputeUnit::kFp32}), 100e9);
  EXPECT_EQ(of.Of(0).Bandwidth(), 1e9);
}

}  // namespace
}  // namespace ranktap::collector
