#include "collector/facts/flops/custom_work.h"

#include <gtest/gtest.h>

#include <memory>

#include "collector/facts/flops/op_flops.h"
#include "collector/trace/known_arithmetic.h"
#include "tests/unit/collector/facts/roofline/planted_operators.h"

namespace ranktap::collector {
namespace {

std::shared_ptr<KnownArithmetic> Said(std::string name, std::string expression) {
  auto known = std::make_shared<KnownArithmetic>();
  known->said.push_back({std::move(name), std::move(expression)});
  return known;
}

TEST(CustomWorkTest, AnOperatorOfALibraryIsUnknownAndNeverZero) {
  PlantedOperators planted("");
  planted.Operator("aten::mm", "[[3, 5], [5, 7]]", "");
  const uint32_t attend = planted.Operator("mylib::attend", "[[2, 8, 4]]", "");
  planted.Operator("aten::empty", "[]", "", "", attend);
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 1u);
  EXPECT_EQ(works.rows[0].name, "mylib::attend");
  EXPECT_EQ(works.rows[0].flops, std::nullopt);
  EXPECT_EQ(works.unknown_ns, works.rows[0].time_ns);
  EXPECT_FALSE(works.on_device);
}

// cuDNN's operator inside has no formula: the convolution around it has, and lacks its strides.
TEST(CustomWorkTest, AProductThatItsFormulaCannotCountIsUnknownAndNeverZero) {
  constexpr std::string_view kShapes = "[[2, 3, 9, 9], [8, 3, 3, 3], []]";
  constexpr std::string_view kStrides =
      R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])";
  for (const std::string_view values : {std::string_view(), kStrides}) {
    PlantedOperators planted;
    const uint32_t convolution = planted.Operator("aten::convolution", kShapes, "", values);
    const uint32_t inner =
        planted.Operator("aten::cudnn_convolution", kShapes, "", "", convolution);
    planted.Kernel("implicit_convolve_sgemm", inner, 3'000);
    const uint32_t mm = planted.Operator("aten::mm", "[[3, 5], [5, 7]]", "");
    planted.Kernel("ampere_sgemm_128x64_nn", mm, 1'000);
    const CustomWorks works = FindCustomWork(planted.trace());
    if (!values.empty()) {
      EXPECT_TRUE(works.rows.empty());
      continue;
    }
    ASSERT_EQ(works.rows.size(), 1u);
    EXPECT_EQ(works.rows[0].name, "aten::convolution");
    EXPECT_EQ(works.rows[0].flops, std::nullopt);
    EXPECT_EQ(works.unknown_ns, 3'000);
    EXPECT_EQ(works.time_ns, 4'000);
  }
}

TEST(CustomWorkTest, AnOperatorThatCallsPytorchsIsCountedByThem) {
  PlantedOperators planted("");
  const uint32_t made = planted.Operator("mylib::mlp", "[[3, 5]]", "");
  planted.Operator("aten::mm", "[[3, 5], [5, 7]]", "", "", made);
  EXPECT_TRUE(FindCustomWork(planted.trace()).rows.empty());
}

TEST(CustomWorkTest, WhatAPersonSaysCountsForTheOperatorAndAllInsideIt) {
  PlantedOperators planted("");
  const uint32_t made = planted.Operator("mylib::mlp", "[[3, 5]]", "");
  planted.Operator("aten::mm", "[[3, 5], [5, 7]]", "", "", made);
  Know(Said("mylib::mlp", "100*in0[0]"), planted.trace());
  const std::vector<FlopCount> counts = CountFlops(planted.trace(), FlopRule::kCounter);
  EXPECT_EQ(counts[0].flops, 300);
  EXPECT_EQ(counts[1].flops, 0);
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 1u);
  EXPECT_EQ(works.rows[0].flops, 300);
  EXPECT_EQ(works.unknown_ns, 0);
}

TEST(CustomWorkTest, AnAutogradFunctionIsToldFromPytorchsOwnNodes) {
  PlantedOperators planted("");
  planted.Operator("MyScale", "[[4]]", "");
  planted.Operator("MyScaleBackward", "[[4]]", "");
  planted.Operator("AddmmBackward0", "[[4]]", "");
  planted.Operator("Pregraph bytecode", "", "");
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 2u);
  EXPECT_EQ(works.rows[0].kind, CustomKind::kAutogradFunction);
  EXPECT_EQ(works.rows[1].kind, CustomKind::kAutogradFunction);
}

TEST(CustomWorkTest, AGeneratedKernelCountsByTheOperatorsOfItsSource) {
  auto known = std::make_shared<KnownArithmetic>();
  known->generated.push_back({"triton_tem_fused_mm_relu_0",
                              "a.py",
                              {{"aten::mm", "[[3, 5], [5, 7]]", "", "[3, 7]", "net.py(9): forward"},
                               {"aten::relu", "[[3, 7]]", "", "[3, 7]", "net.py(10): forward"},
                               {"aten::view", "[[3, 7]]", "", "[21]", ""}}});
  PlantedOperators planted;
  const uint32_t op = planted.Operator("triton_tem_fused_mm_relu_0", "[[3, 5]]", "");
  planted.Kernel("triton_tem_fused_mm_relu_0", op, 700);
  planted.Kernel("triton_tem_fused_mm_relu_0", kNone, 300);  // of a graph: no operator is around
  planted.Kernel("triton_poi_fused_9", kNone, 500);
  Know(known, planted.trace());
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 2u);
  EXPECT_EQ(works.rows[0].calls, 2);
  EXPECT_EQ(works.rows[0].time_ns, 1000);
  EXPECT_EQ(works.rows[0].flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(works.rows[0].operations, 2 * (2 * 3 * 5 * 7 + 21));
  EXPECT_EQ(works.rows[0].lines.size(), 2u);
  EXPECT_EQ(works.rows[1].flops, std::nullopt);
  EXPECT_EQ(works.unknown_ns, 500);
  EXPECT_EQ(works.time_ns, 1500);
  EXPECT_EQ(CountFlops(planted.trace(), FlopRule::kCounter)[0].flops, 2 * 3 * 5 * 7);
}

TEST(CustomWorkTest, SymbolsOfAKernelAreWhatTheShapesOfEachRecordedCallSay) {
  auto known = std::make_shared<KnownArithmetic>();
  known->generated.push_back({"triton_tem_fused_mm_0",
                              "a.py",
                              {{"aten::mm", "[[s0, 5], [5, 2*s1]]", "", "[s0, 2*s1]", ""}},
                              "[[s0, 5], [s1], [s0, 2*s1], []]"});
  PlantedOperators planted("");
  for (const char* const shapes : {"[[3, 5], [7], [3, 14], []]", "[[4, 5], [7], [4, 14], []]"}) {
    planted.Operator("triton_tem_fused_mm_0", shapes, "");
  }
  Know(known, planted.trace());
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 1u);
  EXPECT_EQ(works.rows[0].flops, 2 * (3 + 4) * 5 * 14);
  EXPECT_EQ(works.rows[0].operations, 2 * (3 + 4) * 5 * 14);
  // Nothing was recorded of one call, s1 is in no shape of the second, and the third contradicts.
  for (const char* const shapes : {"", "[[3, 5], [], [], []]", "[[3, 5], [7], [3, 15], []]"}) {
    PlantedOperators other("");
    other.Operator("triton_tem_fused_mm_0", shapes, "");
    Know(known, other.trace());
    EXPECT_EQ(FindCustomWork(other.trace()).rows.at(0).flops, std::nullopt) << shapes;
  }
}

TEST(CustomWorkTest, OfKernelsOfOneNameThoseCountWhoseShapesTheCallHad) {
  auto known = std::make_shared<KnownArithmetic>();
  for (const char* const rows : {"3", "9"}) {
    const std::string shape = std::string("[") + rows + ", 5]";
    known->generated.push_back({"triton_mm_0",
                                std::string(rows) + ".py",
                                {{"aten::mm", "[" + shape + ", [5, 7]]", "", "", ""}},
                                "[" + shape + "]"});
  }
  PlantedOperators planted("");
  planted.Operator("triton_mm_0", "[[9, 5]]", "");
  Know(known, planted.trace());
  EXPECT_EQ(FindCustomWork(planted.trace()).rows.at(0).flops, 2 * 9 * 5 * 7);
}

TEST(CustomWorkTest, AKernelThatTheProgramLaunchesByTheDriversApiIsListedAndUnknown) {
  PlantedOperators planted;
  planted.Kernel("_add_kernel", kNone, 700);
  planted.Kernel("memset_like_kernel", kNone, 300);
  Trace& trace = planted.trace();
  trace.kernels.launch[0] = planted.DriverCall("cuLaunchKernelEx");
  const CustomWorks works = FindCustomWork(trace);
  ASSERT_EQ(works.rows.size(), 1u);
  EXPECT_EQ(works.rows[0].name, "_add_kernel");
  EXPECT_EQ(works.rows[0].kind, CustomKind::kOwnKernel);
  EXPECT_EQ(works.rows[0].flops, std::nullopt);
  EXPECT_EQ(works.unknown_ns, 700);
  // A person says what one launch computes.
  PlantedOperators again;
  again.Kernel("_add_kernel", kNone, 700);
  again.trace().kernels.launch[0] = again.DriverCall("cuLaunchKernelEx");
  Know(Said("_add_kernel", "4096"), again.trace());
  EXPECT_EQ(FindCustomWork(again.trace()).rows.at(0).flops, 4096);
}

TEST(CustomWorkTest, KernelsOfOneNameThatDifferAreUnknown) {
  auto known = std::make_shared<KnownArithmetic>();
  known->generated.push_back(
      {"cpp_fused_mm_0", "a.py", {{"aten::mm", "[[3, 5], [5, 7]]", "", "", ""}}});
  known->generated.push_back(
      {"cpp_fused_mm_0", "b.py", {{"aten::mm", "[[9, 5], [5, 7]]", "", "", ""}}});
  PlantedOperators planted("");
  planted.Operator("graph_0_cpp_fused_mm_0", "", "");
  Know(known, planted.trace());
  const CustomWorks works = FindCustomWork(planted.trace());
  ASSERT_EQ(works.rows.size(), 1u);
  EXPECT_EQ(works.rows[0].flops, std::nullopt);
}

}  // namespace
}  // namespace ranktap::collector
