// Every command that docs/other-profilers.md names is one: reports are run on a small trace, of the
// other verbs the options and formats exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/export/exporter.h"
#include "collector/report/report.h"
#include "collector/terminal/complain.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using Words = std::vector<std::string>;

std::string Page() {
  std::ifstream file(RANKTAP_DOCS "/other-profilers.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Quoted(const std::string& page) {
  static const std::regex kQuoted("`([^`\n]*)`");
  std::vector<std::string> found;
  for (std::sregex_iterator at(page.begin(), page.end(), kQuoted), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

// "[--sort X]" may be left out; here it is not. What a shell takes ends the command.
Words WordsOf(const std::string& command) {
  static const std::regex kWord(R"("([^"]*)\"|([^\s\[\]"]+))");
  Words words;
  for (std::sregex_iterator at(command.begin(), command.end(), kWord), end; at != end; ++at) {
    const std::string word = (*at)[1].matched ? (*at)[1] : (*at)[2];
    if (word == ">" || word == "--" || word == "…" || word == "...") break;
    words.push_back(word);
  }
  return words;
}

std::string HelpOf(const Command& command) {
  testing::internal::CaptureStdout();
  command.run({"--help"});
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(DocumentedCommands, HelpInAPipeHasLinesOf80ColumnsAtMost) {
  for (const Command& command : AllCommands()) {
    std::istringstream lines(HelpOf(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

std::string OptionOf(const std::string& word) { return word.substr(0, word.find('=')); }

void CheckOptions(const Command& command, const Words& words) {
  const std::string help = HelpOf(command);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::regex option("(^|[\\s,{])" + OptionOf(words[i]) + "([\\s,{]|$)");
    EXPECT_TRUE(std::regex_search(help, option)) << command.name << " " << words[i];
    if (words[i] != "--format" || command.name != "export") continue;
    const auto is_it = [&](const Exporter& exporter) { return exporter.name == words.at(i + 1); };
    EXPECT_TRUE(std::ranges::any_of(AllExporters(), is_it)) << words.at(i + 1);
  }
}

TEST(DocumentedCommands, OfOtherProfilersAreOursByNameOptionAndColumn) {
  const TemporaryDirectory directory;
  const std::string run = directory / "t.json";
  std::ofstream(run) << R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,)"
                     << R"("tid":1,"ts":1,"dur":10,"args":{}}]})";
  int reports = 0, others = 0;
  for (const std::string& text : Quoted(Page())) {
    if (!text.starts_with("ranktap ")) continue;
    SCOPED_TRACE(text);
    Words words = WordsOf(text);
    const auto command = std::ranges::find(AllCommands(), words.at(1), &Command::name);
    ASSERT_NE(command, AllCommands().end());
    words.erase(words.begin(), words.begin() + 2);
    CheckOptions(*command, words);
    if (command->name != "report" || words.empty()) {
      ++others;
      continue;
    }
    for (std::string& word : words) {
      if (word == "RUN" || word == "RUN1" || word == "RUN2") word = run;
      if (word == "N" || word == "F") word = "3";
      if (word.starts_with("OUT")) word = directory / word;
    }
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = command->run(words);
    std::fflush(stdout);
    testing::internal::GetCapturedStdout();
    const std::string complained = testing::internal::GetCapturedStderr();
    EXPECT_NE(status, kWrongUsage) << complained;
    ++reports;
  }
  EXPECT_GT(reports, 60);
  EXPECT_GT(others, 5);
}

// The page has a line for each of these, whether we answer it or not.
TEST(DocumentedCommands, EachReportOfNsysAndFunctionOfHtaIsOnThePage) {
  const std::string page = Page();
  const std::vector<std::string> quoted = Quoted(page);
  const std::set<std::string> on_page(quoted.begin(), quoted.end());
  for (const char* const name : {"cuda_api_sum",
                                 "cuda_api_trace",
                                 "cuda_gpu_kern_sum",
                                 "cuda_gpu_kern_gb_sum",
                                 "cuda_gpu_mem_time_sum",
                                 "cuda_gpu_mem_size_sum",
                                 "cuda_gpu_sum",
                                 "cuda_api_gpu_sum",
                                 "cuda_gpu_trace",
                                 "cuda_kern_exec_sum",
                                 "cuda_kern_exec_trace",
                                 "nvtx_sum",
                                 "nvtx_pushpop_sum",
                                 "nvtx_startend_sum",
                                 "nvtx_pushpop_trace",
                                 "nvtx_gpu_proj_sum",
                                 "nvtx_gpu_proj_trace",
                                 "nvtx_kern_sum",
                                 "um_sum",
                                 "um_total_sum",
                                 "um_cpu_page_faults_sum",
                                 "mpi_event_sum",
                                 "mpi_event_trace",
                                 "mpi_msg_size_sum",
                                 "osrt_sum",
                                 "syscall_sum",
                                 "network_congestion",
                                 "openmp_sum",
                                 "openacc_sum",
                                 "nvvideo_api_sum",
                                 "wddm_queue_sum",
                                 "cuda_memcpy_async",
                                 "cuda_memcpy_sync",
                                 "cuda_memset_sync",
                                 "cuda_api_sync",
                                 "gpu_gaps",
                                 "gpu_time_util",
                                 "dx12_mem_ops",
                                 "cuda_gpu_kern_hist",
                                 "cuda_gpu_kern_pace",
                                 "cuda_gpu_time_util_map",
                                 "diff",
                                 "file_access_sum",
                                 "gfx_hotspot",
                                 "gpu_metric_util_map",
                                 "gpu_metric_util_sum",
                                 "gpu_vram_usage_trace",
                                 "mpi_gpu_time_util_map",
                                 "mpi_sum",
                                 "nccl_gpu_overlap_trace",
                                 "nccl_gpu_proj_sum",
                                 "nccl_gpu_time_util_map",
                                 "nccl_sum",
                                 "network_map_aws",
                                 "network_sum",
                                 "network_traffic_map",
                                 "nvlink_sum",
                                 "nvtx_cpu_topdown",
                                 "nvtx_gpu_proj_pace",
                                 "nvtx_pace",
                                 "storage_util_map",
                                 "ucx_gpu_time_util_map",
                                 "get_temporal_breakdown",
                                 "get_idle_time_breakdown",
                                 "get_gpu_kernel_breakdown",
                                 "get_gpu_kernels_with_user_annotations",
                                 "get_gpu_user_annotation_breakdown",
                                 "get_comm_comp_overlap",
                                 "get_cuda_kernel_launch_stats",
                                 "get_aten_op_kernels_and_delay",
                                 "get_queue_length_time_series",
                                 "get_queue_length_summary",
                                 "get_time_spent_blocked_on_full_queue",
                                 "get_memory_bw_time_series",
                                 "get_memory_bw_summary",
                                 "generate_trace_with_counters",
                                 "get_frequent_cuda_kernel_sequences",
                                 "get_cupti_counter_data_with_operators",
                                 "critical_path_analysis",
                                 "get_potential_stragglers",
                                 "compare_traces",
                                 "ops_diff",
                                 "plot_memory_timeline"}) {
    EXPECT_TRUE(on_page.contains(name)) << name;
  }
  // What we answer by nsys' name is said to be answered by it.
  for (const char* const name : {"cuda_gpu_kern_sum", "gpu_gaps", "nccl_sum", "nvtx_sum"}) {
    EXPECT_NE(FindReport(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace ranktap::collector
