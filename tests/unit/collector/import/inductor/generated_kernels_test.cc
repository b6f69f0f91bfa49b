#include "collector/import/inductor/generated_kernels.h"

#include <gtest/gtest.h>

#include <string>

namespace ranktap::collector {
namespace {

TEST(GeneratedKernelsTest, AGpusGeneratedFileNamesTheNodesOfAKernelWithTheirSizes) {
  constexpr std::string_view kFile = R"py(
async_compile = AsyncCompile()

# kernel path: /tmp/cache/ab/cab.py
# Topologically Sorted Source Nodes: [linear, relu], Original ATen: [aten.addmm, aten.relu]
# Source node to ATen node mapping:
#   relu => mul
# Graph fragment:
#   %arg0 : Tensor "f32[3, 5][5, 1]cuda:0" = PlaceHolder[target=arg0]
#   %arg1 : Tensor "f32[5, 7][1, 5]cuda:0" = PlaceHolder[target=arg1]
#   %mm : Tensor "f32[3, 7][7, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mm.default](args = (%arg0, %arg1), kwargs = {})
#   %mul : Tensor "f32[3, 7][7, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%mm, 0.5), kwargs = {})
#   return %mul
triton_tem_fused_addmm_relu_0 = async_compile.triton('triton_tem_fused_addmm_relu_0', '''
import triton
''', device_str='cuda')

def call(args):
        # Topologically Sorted Source Nodes: [linear, relu], Original ATen: [aten.addmm, aten.relu]
        triton_tem_fused_addmm_relu_0.run(arg0_1, buf0, 21, stream=stream0)
        # Topologically Sorted Source Nodes: [], Original ATen: []
        scale_kernel_0.run(buf0, 21, stream=stream0)
)py";
  FxNodes lines;
  lines["mul"].line = "net.py(9): forward";
  std::vector<GeneratedKernel> kernels;
  ReadGeneratedFile(kFile, "a.py", lines, &kernels);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "triton_tem_fused_addmm_relu_0");
  ASSERT_EQ(kernels[0].operators.size(), 2u);
  EXPECT_EQ(kernels[0].operators[0].name, "aten::mm");
  EXPECT_EQ(kernels[0].operators[0].shapes, "[[3, 5], [5, 7]]");
  EXPECT_EQ(kernels[0].operators[1].shapes, "[[3, 7], []]");
  EXPECT_EQ(kernels[0].operators[1].values, R"(["", "0.5"])");
  EXPECT_EQ(kernels[0].operators[1].output, "[3, 7]");
  EXPECT_EQ(kernels[0].operators[1].line, "net.py(9): forward");
  EXPECT_EQ(kernels[1].name, "scale_kernel_0");  // the program's own Triton
  EXPECT_TRUE(kernels[1].operators.empty());
}

TEST(GeneratedKernelsTest, ACallsBuffersHaveTheSizesThatTheFileSaysOfThem) {
  constexpr std::string_view kFile = R"py(
# Graph fragment:
#   %arg1_1 : Tensor "f32[s77, 64][64, 1]cuda:0" = PlaceHolder[target=arg1_1]
#   %sin : Tensor "f32[s77, 64][64, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%arg1_1,), kwargs = {})
triton_poi_fused_sin_0 = async_compile.triton('triton_poi_fused_sin_0', '''
''', device_str='cuda')
def call(args):
    arg0_1, arg1_1 = args
    s77 = arg0_1
    assert_size_stride(arg1_1, (s77, 64), (64, 1), 'input')
        buf0 = empty_strided_cuda((s77, 64), (64, 1), torch.float32)
        buf1 = reinterpret_tensor(buf0, (64*s77, ), (1, ), 0); del buf0  # reuse
        buf2 = buf1; del buf1  # reuse
        triton_poi_fused_sin_0_xnumel = 64*s77
        triton_poi_fused_sin_0.run(arg1_1, buf2, triton_poi_fused_sin_0_xnumel, stream=stream0)
)py";
  std::vector<GeneratedKernel> kernels;
  ReadGeneratedFile(kFile, "a.py", {}, &kernels);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].arguments, "[[s77, 64], [64*s77], []]");
  EXPECT_EQ(kernels[0].operators[0].shapes, "[[s77, 64]]");
}

TEST(GeneratedKernelsTest, AnOlderFilesNodesHaveNoSizes) {
  constexpr std::string_view kFile =
      "# Topologically Sorted Source Nodes: [x], Original ATen: [aten.div]\n"
      "# Graph fragment:\n"
      "#   %div : [num_users=2] = call_function[target=torch.ops.aten.div.Tensor](args = (%arg0_1, "
      "%expand), kwargs = {})\n"
      "triton_poi_fused_div_0 = async_compile.triton('triton_poi_fused_div_0', '''\n"
      "# Topologically Sorted Source Nodes: [y], Original ATen: [aten.mm, prims.exp]\n"
      "triton_2 = async_compile.triton('triton_', '''\n";
  std::vector<GeneratedKernel> kernels;
  ReadGeneratedFile(kFile, "a.py", {}, &kernels);
  ASSERT_EQ(kernels.size(), 2u);
  ASSERT_EQ(kernels[0].operators.size(), 1u);
  EXPECT_EQ(kernels[0].operators[0].name, "aten::div");
  EXPECT_EQ(kernels[0].operators[0].shapes, "");
  ASSERT_EQ(kernels[1].operators.size(), 2u);
  EXPECT_EQ(kernels[1].operators[1].name, "prims::exp");
}

constexpr std::string_view kGraph = R"py(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[128, 64]", primals_3: "f32[32, s0]"):
         # File: /home/u/net.py:8 in forward, code: h = gelu(self.a(x))
        permute: "f32[64, 128]" = torch.ops.aten.permute.default(primals_1, [1, 0]);  primals_1 = None
        mul: "f32[64, 128]" = torch.ops.aten.mul.Tensor(permute, 0.5)
        # Backward of forward node: File: /home/u/net.py:9 in forward, code: return x
        var_mean = torch.ops.aten.var_mean.correction(mul, [1], correction = 0)
        getitem: "f32[64, 1]" = var_mean[0]
        odd: "f32[32, s0]" = torch.ops.aten.exp.default(primals_3)
)py";

TEST(GeneratedKernelsTest, ACpusKernelsAreThoseOfTheGraphThatTheirCompilationLogged) {
  std::string log =
      R"(V1125 21:36:48.801000 1 torch/_inductor/compile_fx.py:1725] {"artifact": {"name": "inductor_post_grad_graph", "encoding": "string"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "98"})"
      "\n\t";
  for (const char c : kGraph) log += c == '\n' ? std::string("\n\t") : std::string(1, c);
  log +=
      "\n"
      R"(V1125 21:37:07.115000 1 torch/_inductor/compile_fx.py:1953] {"artifact": {"name": "inductor_provenance_tracking_node_mappings", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "a0"})"
      "\n\t"
      R"({"cppCodeToPost": {"extern_kernels.addmm:1": ["addmm"], "cpp_fused_gelu_0:2": ["mul", "permute", "var_mean", "getitem"], "cpp_fused_exp_1:3": ["odd", "lost"]}})"
      "\n";
  std::vector<GeneratedKernel> kernels;
  ReadCompileLog(log, "torch_trace.log", &kernels);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "cpp_fused_exp_1");
  EXPECT_EQ(kernels[0].operators[0].output, "[32, s0]");
  EXPECT_EQ(kernels[0].operators[0].shapes, "[[32, s0]]");
  EXPECT_EQ(kernels[0].operators[1].name, "?");
  EXPECT_EQ(kernels[1].name, "cpp_fused_gelu_0");
  ASSERT_EQ(kernels[1].operators.size(), 3u);
  EXPECT_EQ(kernels[1].operators[0].name, "aten::mul");
  EXPECT_EQ(kernels[1].operators[0].shapes, "[[64, 128], []]");
  EXPECT_EQ(kernels[1].operators[0].line, "/home/u/net.py(8): forward");
  EXPECT_EQ(kernels[1].operators[2].name, "aten::var_mean");
  EXPECT_EQ(kernels[1].operators[2].line, "/home/u/net.py(9): forward");
}

TEST(GeneratedKernelsTest, ABackwardsKernelsHaveTheLinesOfTheirStacksAndUnknownArithmetic) {
  constexpr std::string_view kLog =
      R"(V] {"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces"}})"
      "\n\t"
      R"({"cpp_fused_sum_0:1": ["  File \"net.py\", line 3, in main\n    x\n  File \"net.py\", line 9, in forward\n    y\n"], "extern_kernels.mm:2": []})";
  std::vector<GeneratedKernel> kernels;
  ReadCompileLog(kLog, "torch_trace.log", &kernels);
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].operators.size(), 1u);
  EXPECT_EQ(kernels[0].operators[0].name, "?");
  EXPECT_EQ(kernels[0].operators[0].line, "net.py(9): forward");
}

TEST(GeneratedKernelsTest, KernelInformationNamesNodesOfTheGraphBesideIt) {
  FxNodes nodes;
  std::string line;
  ReadFxLine(R"(mul: "f32[64, 128]" = torch.ops.aten.mul.Tensor(x, 0.5))", &line, &nodes);
  std::vector<GeneratedKernel> kernels;
  ReadKernelNodes(
      R"({"triton_poi_fused_0:1": {"stack_traces": ["File \"net.py\", line 8, in forward"], "post_grad_nodes": ["mul"], "pre_grad_nodes": ["h"]}})",
      "kernel_information.json", nodes, &kernels);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "triton_poi_fused_0");
  EXPECT_EQ(kernels[0].operators[0].name, "aten::mul");
}

TEST(GeneratedKernelsTest, AnyTextIsReadWithoutHarm) {
  for (const std::string_view text :
       {"",
        "\t",
        "#",
        "%",
        "%x : ",
        "x: \"",
        "x: \"f32[",
        "def forward(: \"",
        "# File: a in b",
        "# File: :",
        "x = torch.ops.",
        "x = torch.ops.a.b(((",
        "%x : \"[\" torch.ops.a.b(args = (",
        "V] {\"artifact\": 3}",
        "V] {\"artifact\": {\"name\": \"inductor_post_grad_graph\"}}\n\tx",
        "a.run(",
        ".run(",
        "{\"cppCodeToPost\": 3}",
        "{\"a\": {\"post_grad_nodes\": [3]}}",
        "# Original ATen: [",
        "# Original ATen: [, , ]\nx.run("}) {
    std::vector<GeneratedKernel> kernels;
    ReadGeneratedFile(text, "a", {}, &kernels);
    ReadCompileLog(text, "a", &kernels);
    ReadKernelNodes(text, "a", {}, &kernels);
  }
}

}  // namespace
}  // namespace ranktap::collector
