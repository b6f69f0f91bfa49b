// Rules about matrix products and convolutions. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include <string>

#include "collector/facts/kernel_kinds.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kFloatProduct = "ampere_sgemm_128x64_nn";
constexpr std::string_view kTf32Product = "cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align4";

// 10 steps of 10 ms in which the device is never idle: `product` takes 4 ms of each.
InsightProgram AProgramThatMultiplies(std::string_view product, uint32_t major = 8,
                                      std::string_view other = "relu") {
  InsightProgram program;
  v1::Device* const device = program->trace().hello.add_devices();
  device->set_id(0);
  device->set_compute_major(major);
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel(
        {.name = product, .launched = at, .start = at + 2 * kUs, .end = at + 4 * kMs});
    program->AddKernel(
        {.name = other, .launched = at + 5 * kUs, .start = at + 4 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

// What the kernels named `product` were launched for.
void DescribeProducts(InsightProgram* program, std::string_view shapes) {
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    (*program)->AddOperator("aten::mm", at, at + 3 * kUs);
  }
  Trace& trace = (*program)->trace();
  const uint32_t text = trace.dictionary.AppendString(shapes);
  const uint32_t types = trace.dictionary.AppendString(R"(["c10::BFloat16", "c10::BFloat16"])");
  for (size_t op = 0; op < trace.operators.size(); ++op) {
    trace.operators.shapes.push_back(text);
    trace.operators.types.push_back(types);
  }
  JoinOperators(&trace);
}

// 10 convolutions, each of them of as many shapes in turn.
InsightProgram AProgramThatConvolves(std::string_view benchmark, size_t shapes) {
  InsightProgram program = AProgramThatMultiplies("implicit_convolve_sgemm");
  Trace& trace = program->trace();
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddOperator("aten::cudnn_convolution", at, at + 3 * kUs);
  }
  const uint32_t values =
      trace.dictionary.AppendString(R"(["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", ")" +
                                    std::string(benchmark) + R"(", "False", "True"])");
  std::vector<uint32_t> texts;
  for (size_t i = 0; i < shapes; ++i) {
    texts.push_back(trace.dictionary.AppendString("[[8, 64, 56, " + std::to_string(i) + "], []]"));
  }
  for (size_t op = 0; op < trace.operators.size(); ++op) {
    trace.operators.shapes.push_back(texts[op % shapes]);
    trace.operators.values.push_back(values);
  }
  JoinOperators(&trace);
  return program;
}

TEST(UnsearchedConvolutionsRule, FiresWhereShapesComeAgainAndNothingIsTried) {
  InsightProgram program = AProgramThatConvolves("False", 2);
  const Insight found = TheFinding(program.run(), "unsearched-convolutions");
  EXPECT_EQ(found.finding,
            "cuDNN guesses the algorithm of 10 convolutions of 2 shapes, taking 3.998 ms of each "
            "10.00 ms step (40.0 %).");
  EXPECT_FALSE(found.saving_ns.has_value());
}

TEST(UnsearchedConvolutionsRule, IsSilentWithASearchAndWhereEachShapeIsNew) {
  EXPECT_TRUE(IsSilent(AProgramThatConvolves("True", 2).run(), "unsearched-convolutions"));
  EXPECT_TRUE(IsSilent(AProgramThatConvolves("False", 10).run(), "unsearched-convolutions"));
}

TEST(UnsearchedConvolutionsRule, SaysThatItCannotTellWithoutInputs) {
  EXPECT_TRUE(IsUnchecked(AProgramThatMultiplies("implicit_convolve_sgemm").run(),
                          "unsearched-convolutions"));
}

TEST(Tf32OffRule, FiresOnProductsOfFloatsOfADeviceThatHasIt) {
  InsightProgram program = AProgramThatMultiplies(kFloatProduct);
  const Insight found = TheFinding(program.run(), "tf32-off");
  EXPECT_EQ(
      found.finding,
      "10 kernels multiply 32-bit floats without TF32, and none of their kind uses it, taking "
      "3.998 ms of each 10.00 ms step (40.0 %); most time goes to ampere_sgemm_128x64_nn.");
  EXPECT_EQ(found.advice,
            "Call torch.set_float32_matmul_precision(\"high\"), or use bf16 autocast.");
  // An A100 does 8 times as much with TF32.
  EXPECT_NEAR(static_cast<double>(found.lost_ns), 0.875 * 3'998'000, 1'000);
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 0.875 * 3'998'000, 1'000);
}

// "float" in a kernel's name is the type that it sums in: what is multiplied the operator says.
TEST(Tf32OffRule, IsSilentOnBf16WhateverTheKernelIsCalled) {
  constexpr std::string_view kSumsInFloats =
      "void gemmSN_NN_kernel<float, 128, 2, 4, 8, 6, 4, false>";
  InsightProgram floats = AProgramThatMultiplies(kSumsInFloats);
  EXPECT_EQ(FindingsOf(floats.run(), "tf32-off").size(), 1u);
  InsightProgram bf16 = AProgramThatMultiplies(kSumsInFloats);
  DescribeProducts(&bf16, "[[8, 8], [8, 8]]");
  EXPECT_TRUE(IsSilent(bf16.run(), "tf32-off"));
}

TEST(Tf32OffRule, IsSilentWhereTheyUseIt) {
  InsightProgram program = AProgramThatMultiplies(kTf32Product);
  EXPECT_TRUE(IsSilent(program.run(), "tf32-off"));
}

TEST(Tf32OffRule, IsSilentOnADeviceThatHasNone) {
  InsightProgram program = AProgramThatMultiplies(kFloatProduct, 7);
  EXPECT_TRUE(IsSilent(program.run(), "tf32-off"));
}

TEST(Tf32OffRule, SaysThatItCannotTellWhatNoNameSays) {
  InsightProgram program = AProgramThatMultiplies("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV");
  EXPECT_TRUE(IsUnchecked(program.run(), "tf32-off"));
}

TEST(NoTensorCoresRule, FiresOnProductsOfFloatsOfAV100) {
  InsightProgram program = AProgramThatMultiplies("volta_sgemm_64x64_nt", 7);
  const Insight found = TheFinding(program.run(), "no-tensor-cores");
  EXPECT_EQ(found.finding,
            "10 kernels multiply without tensor cores, although the device has them for 16-bit "
            "floats, taking 3.998 ms of each 10.00 ms step (40.0 %); most time goes to "
            "volta_sgemm_64x64_nt.");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 0.875 * 3'998'000, 1'000);
}

TEST(NoTensorCoresRule, IsSilentOnADeviceWithoutThem) {
  InsightProgram program = AProgramThatMultiplies("volta_sgemm_64x64_nt", 6);
  EXPECT_TRUE(IsSilent(program.run(), "no-tensor-cores"));
}

TEST(NoTensorCoresRule, FiresOnHalfFloatsAndIsSilentOnThoseOfTensorCores) {
  InsightProgram without = AProgramThatMultiplies("volta_hgemm_128x64_nn", 7);
  EXPECT_EQ(TheFinding(without.run(), "no-tensor-cores").count, 10);
  InsightProgram with = AProgramThatMultiplies("volta_h884gemm_128x64_nn", 7);
  EXPECT_TRUE(IsSilent(with.run(), "no-tensor-cores"));
}

// Whose own setting is off, tf32-off says; here some products cannot use it.
TEST(NoTensorCoresRule, FiresOnFloatsBesideTf32) {
  InsightProgram beside = AProgramThatMultiplies(kFloatProduct, 8, kTf32Product);
  EXPECT_EQ(TheFinding(beside.run(), "no-tensor-cores").count, 10);
  EXPECT_TRUE(IsSilent(beside.run(), "tf32-off"));
  InsightProgram alone = AProgramThatMultiplies(kFloatProduct);
  EXPECT_TRUE(IsSilent(alone.run(), "no-tensor-cores"));
}

TEST(OffMultipleShapesRule, FiresOnKernelsThatLoadLessThanTheyCould) {
  InsightProgram program =
      AProgramThatMultiplies("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2");
  const Insight found = TheFinding(program.run(), "off-multiple-shapes");
  EXPECT_EQ(found.finding,
            "10 products have dimensions that tensor cores cannot load in whole steps, taking "
            "3.998 ms of each 10.00 ms step (40.0 %): the longest loads 2 elements at once instead "
            "of 8.");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 1'999'000, 1'000);
}

TEST(OffMultipleShapesRule, IsSilentOnKernelsThatLoadAllTheyCan) {
  InsightProgram program =
      AProgramThatMultiplies("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align8");
  EXPECT_TRUE(IsSilent(program.run(), "off-multiple-shapes"));
}

TEST(OffMultipleShapesRule, GoesByShapesWhereTheKernelDoesNotSay) {
  const std::string_view product = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_warpgroupsize1x1x1";
  InsightProgram off = AProgramThatMultiplies(product);
  DescribeProducts(&off, "[[512, 768], [768, 30522]]");
  const Insight found = TheFinding(off.run(), "off-multiple-shapes");
  EXPECT_NE(found.finding.find("multiplies 512x768 by 768x30522 (c10::BFloat16), and 8 elements "
                               "are 16 bytes"),
            std::string::npos)
      << found.finding;
  EXPECT_EQ(found.where, "aten::mm");
  InsightProgram padded = AProgramThatMultiplies(product);
  DescribeProducts(&padded, "[[512, 768], [768, 30528]]");
  EXPECT_TRUE(IsSilent(padded.run(), "off-multiple-shapes"));
  InsightProgram unknown = AProgramThatMultiplies(product);
  EXPECT_TRUE(IsUnchecked(unknown.run(), "off-multiple-shapes"));
}

TEST(LayoutTransposesRule, FiresOnTransposesAroundConvolutions) {
  InsightProgram program =
      AProgramThatMultiplies("void cudnn::ops::nchwToNhwcKernel<float, float>");
  const Insight found = TheFinding(program.run(), "layout-transposes");
  EXPECT_EQ(found.finding,
            "10 kernels, once a step, transpose between NCHW and NHWC around convolutions, taking "
            "3.998 ms of each 10.00 ms step (40.0 %).");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 3'998'000, 1'000);
}

TEST(LayoutTransposesRule, IsSilentOnOtherKernelsOfConvolutions) {
  InsightProgram program = AProgramThatMultiplies("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>");
  EXPECT_TRUE(IsSilent(program.run(), "layout-transposes"));
}

// Names in traces of V100, A100 and H100.
TEST(KernelKinds, KnowTheNamesOfNvidiasLibraries) {
  const auto math = [](std::string_view name) { return KindOfKernel(name).math; };
  EXPECT_EQ(math("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1"), ProductMath::kFloat);
  EXPECT_EQ(math("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>"),
            ProductMath::kFloat);
  EXPECT_EQ(math("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"),
            ProductMath::kFloat);
  EXPECT_EQ(math("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw"),
            ProductMath::kTensor);
  EXPECT_EQ(math("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8"),
            ProductMath::kTensor);
  EXPECT_EQ(math("void gemv2T_kernel_val<int, int, float>"), ProductMath::kNone);
  EXPECT_EQ(math("void splitKreduce_kernel<32, 16, int, float>"), ProductMath::kNone);
  EXPECT_EQ(math("ncclKernel_AllReduce_RING_LL_Sum_float"), ProductMath::kNone);
}

}  // namespace
}  // namespace ranktap::collector
