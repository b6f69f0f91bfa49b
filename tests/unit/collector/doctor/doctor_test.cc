// Each finding of `ranktap doctor`, provoked in a machine made of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collector/doctor/finding.h"
#include "proto/spool.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kDriver550[] =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n";

auto Says(Severity severity, const std::string& what) {
  return Contains(
      AllOf(Field(&Finding::severity, severity), Field(&Finding::what, HasSubstr(what))));
}
auto Advises(const std::string& advice) {
  return Contains(Field(&Finding::advice, HasSubstr(advice)));
}
auto AllIsWell() { return Each(Field(&Finding::severity, Severity::kOk)); }

class DoctorTest : public testing::Test {
 protected:
  // A healthy machine.
  DoctorTest() {
    Write("/proc/driver/nvidia/version", kDriver550);
    Write("/proc/driver/nvidia/params", "RmLogonRC: 1\nRmProfilingAdminOnly: 0\n");
    Write("/dev/nvidia0", "");
    Write("/dev/nvidiactl", "");
    Write("/proc/sys/kernel/osrelease", "6.1.0\n");
    Write("/proc/sys/kernel/yama/ptrace_scope", "0\n");
    Write("/proc/sys/kernel/perf_event_paranoid", "2\n");
    Write("/proc/self/status", "Name:\tranktap\nSeccomp:\t0\n");
    Write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max file size             unlimited            unlimited            bytes     \n"
          "Max open files            4096                 4096                 files     \n");
    fs::create_directories(Root() + "/tmp");
    fs::create_directories(Root() + "/var/tmp");
  }

  std::string Root() { return folder_ / "root"; }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(Root() + path).parent_path());
    std::ofstream(Root() + path) << text;
  }
  HostView Host(const std::vector<std::string_view>& environment = {}) {
    HostView host(Root(), environment);
    host.agent_library = "/opt/ranktap/lib/libranktap.so";
    return host;
  }

  TemporaryDirectory folder_;
};

TEST_F(DoctorTest, AHealthyMachineHasNothingToComplainOf) {
  for (const Check& check : AllChecks()) {
    if (check.name == "cupti") continue;  // a real library: below
    EXPECT_THAT(check.run(Host()), AllIsWell()) << check.name;
  }
}

TEST_F(DoctorTest, WithoutADriverThereAreNoKernels) {
  fs::remove(Root() + "/proc/driver/nvidia/version");
  EXPECT_THAT(CheckDriver(Host()), Says(Severity::kProblem, "no NVIDIA driver is loaded"));
  EXPECT_THAT(CheckDriver(Host()).at(0).advice, testing::HasSubstr("--level full"));
}

TEST_F(DoctorTest, AContainerWithoutDevicesAndAnOldDriverAreSaid) {
  fs::remove(Root() + "/dev/nvidia0");
  EXPECT_THAT(CheckDriver(Host()), Says(Severity::kProblem, "/dev has no nvidia0"));
  Write("/proc/driver/nvidia/version", "NVRM version: Kernel Module  440.33.01  2019\n");
  EXPECT_THAT(CheckDriver(Host()), Says(Severity::kWarning, "older than CUDA 11.8"));
}

TEST_F(DoctorTest, ADeviceThatThisUserMayNotOpenIsAProblem) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  fs::permissions(Root() + "/dev/nvidia0", fs::perms::none);
  EXPECT_THAT(CheckDriver(Host()), Says(Severity::kProblem, "cannot be opened by this user"));
}

TEST_F(DoctorTest, CopiesOfCuptiAreAskedForTheirVersionAndHeldAgainstTheDriver) {
  EXPECT_THAT(CheckCupti(Host()), Says(Severity::kWarning, "no libcupti in the usual places"));
  const std::string copy = "/usr/local/cuda-13.0/extras/CUPTI/lib64/libcupti.so.13";
  Write(copy, "not a library");
  EXPECT_THAT(CheckCupti(Host()), Says(Severity::kWarning, "cannot be loaded"));
  EXPECT_THAT(CheckCupti(Host({"RANKTAP_CUPTI=/nowhere/libcupti.so"})),
              Says(Severity::kProblem, "RANKTAP_CUPTI names /nowhere/libcupti.so"));
#ifdef RANKTAP_STANDIN_CUPTI
  fs::copy_file(RANKTAP_STANDIN_CUPTI, Root() + copy, fs::copy_options::overwrite_existing);
  EXPECT_THAT(CheckCupti(Host()), Says(Severity::kWarning,
                                       "CUPTI 13.0 is newer than the driver, which ends with CUDA "
                                       "12"));
  Write("/proc/driver/nvidia/version", "NVRM version: Kernel Module  580.65.06  2025\n");
  EXPECT_THAT(CheckCupti(Host()), Says(Severity::kOk, "libcupti.so.13: CUPTI 13.0"));
#endif
}

TEST_F(DoctorTest, TheDeviceMemoryThatCuptiMayTakeIsSaid) {
  EXPECT_THAT(CheckCupti(Host()), Says(Severity::kOk,
                                       "16 buffers of a GPU's memory in each "
                                       "context, 51 MB (RANKTAP_DEVICE_BUFFERS)"));
  EXPECT_THAT(CheckCupti(Host({"RANKTAP_DEVICE_BUFFERS=250"})), Says(Severity::kOk, "800 MB"));
}

TEST_F(DoctorTest, CountersForAdministratorsAreANoteForOthers) {
  Write("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  const auto findings = CheckCounterPermission(Host());
  if (::geteuid() == 0) {
    EXPECT_THAT(findings, AllIsWell());
  } else {
    EXPECT_THAT(findings, Says(Severity::kNote, "for administrators"));
    EXPECT_THAT(findings, Advises("NVreg_RestrictProfilingToAdminUsers=0"));
  }
}

TEST_F(DoctorTest, WhatTheKernelRefusesIsNamedWithItsConsequence) {
  Write("/probe/nvml", "2");
  EXPECT_THAT(CheckNvml(Host()), Says(Severity::kNote, "no clocks, power or temperature"));
  Write("/probe/memfd", "1");
  Write("/probe/pidfd", "38");
  Write("/probe/wipeonfork", "22");
  Write("/proc/self/status", "Seccomp:\t2\n");
  const auto findings = CheckKernel(Host());
  EXPECT_THAT(findings, Says(Severity::kProblem, "memfd_create is refused (Operation not perm"));
  EXPECT_THAT(findings, Says(Severity::kProblem, "MADV_WIPEONFORK is refused"));
  EXPECT_THAT(findings, Says(Severity::kWarning, "pidfd_open is refused (Function not impl"));
  EXPECT_THAT(findings, Says(Severity::kNote, "seccomp filter"));
}

TEST_F(DoctorTest, PtraceAndPerfAreNotesSinceNothingNeedsThem) {
  Write("/proc/sys/kernel/yama/ptrace_scope", "3\n");
  EXPECT_THAT(CheckPtrace(Host()), Says(Severity::kNote, "ptrace_scope is 3"));
  fs::remove(Root() + "/proc/sys/kernel/perf_event_paranoid");
  EXPECT_THAT(CheckPerf(Host()), Says(Severity::kNote, "no perf events"));
}

TEST_F(DoctorTest, LimitsThatAreInTheWay) {
  Write("/proc/self/limits",
        "Max file size             1048576              unlimited            bytes     \n"
        "Max open files            256                  4096                 files     \n"
        "Max address space         536870912            unlimited            bytes     \n");
  const auto findings = CheckLimits(Host());
  EXPECT_THAT(findings, Says(Severity::kWarning, "at most 256 open files"));
  EXPECT_THAT(findings, Says(Severity::kWarning, "at most 1048576 bytes"));
  EXPECT_THAT(findings, Says(Severity::kWarning, "limited to 512 MiB"));
}

TEST_F(DoctorTest, AnAgentThatCannotBeLoaded) {
  HostView host = Host();
  Write("/probe/noexec", "13");
  EXPECT_THAT(CheckAgent(host), Says(Severity::kProblem, "mounted noexec"));
  host.agent_library = "/opt/my tools/libranktap.so";
  EXPECT_THAT(CheckAgent(host), Says(Severity::kWarning, "a colon or a space"));
  host.agent_library.clear();
  host.agent_problem = "lib/libranktap.so is missing";
  EXPECT_THAT(CheckAgent(host), Says(Severity::kProblem, "is missing"));
}

TEST_F(DoctorTest, PlacesThatAreNotThereOrNotOurs) {
  EXPECT_THAT(CheckSocket(Host({"RANKTAP_SOCKET=/run/nobody"})),
              Says(Severity::kWarning, "where nobody listens"));
  const std::string long_name = "RANKTAP_SOCKET=/" + std::string(200, 'x');
  EXPECT_THAT(CheckSocket(Host({long_name})), Says(Severity::kProblem, "longer than a socket's"));
  EXPECT_THAT(CheckSocket(Host({"TMPDIR=/nowhere"})),
              Says(Severity::kProblem, "/nowhere cannot be written to"));

  Write("/probe/spool-space", "28");
  EXPECT_THAT(CheckSpool(Host()), Says(Severity::kWarning, "less than 1 GiB is free"));
  const std::string spool = proto::SpoolDirectoryOf(::geteuid());
  Write(spool + "/0123-0.spool", "");
  fs::permissions(Root() + spool, fs::perms::owner_all);
  EXPECT_THAT(CheckSpool(Host()), Says(Severity::kNote, "1 spool waits"));
  fs::permissions(Root() + spool, fs::perms::all);
  EXPECT_THAT(CheckSpool(Host()), Says(Severity::kProblem, "not a directory of this user's alone"));
}

TEST_F(DoctorTest, OtherToolsInTheEnvironment) {
  const auto findings =
      CheckVariables(Host({"CUDA_INJECTION64_PATH=/opt/nsight/libToolsInjection64.so",
                           "RANKTAP_DISABLE=1", "NVTX_INJECTION64_PATH=/opt/other.so",
                           "LD_PRELOAD=libjemalloc.so.2", "KINETO_USE_DAEMON=1"}));
  EXPECT_THAT(findings, Says(Severity::kProblem, "CUDA_INJECTION64_PATH is /opt/nsight/"));
  EXPECT_THAT(findings, Says(Severity::kProblem, "NVTX_INJECTION64_PATH is /opt/other.so"));
  EXPECT_THAT(findings, Says(Severity::kProblem, "RANKTAP_DISABLE=1"));
  EXPECT_THAT(findings, Says(Severity::kNote, "libjemalloc.so.2"));
  EXPECT_THAT(findings, Says(Severity::kNote, "KINETO_USE_DAEMON"));
  EXPECT_THAT(CheckVariables(Host({"CUDA_INJECTION64_PATH=/opt/ranktap/lib/libranktap.so"})),
              AllIsWell());
}

TEST_F(DoctorTest, HoldersOfCuptiAreNamedWithTheirProcess) {
  Write("/proc/41/maps", "7f00 r-xp /opt/nsight/libToolsInjection64.so\n");
  Write("/proc/41/comm", "python3\n");
  Write("/proc/42/maps", "7f00 r-xp /opt/libranktap.so\n7f10 r-xp /usr/lib/libcupti.so.13\n");
  Write("/proc/43/maps", "");
  Write("/proc/43/comm", "nv-hostengine\n");
  const auto findings = CheckHolders(Host());
  EXPECT_THAT(findings, SizeIs(2)) << "a process of our own is none";
  EXPECT_THAT(findings, Says(Severity::kNote, "pid 41 (python3) has Nsight Systems loaded"));
  EXPECT_THAT(findings, Says(Severity::kNote, "DCGM (nv-hostengine, pid 43)"));
}

TEST_F(DoctorTest, TheLastRunSaysHowEachRankWasLoadedAndWhatItLacked) {
  Write("/runs/ranktap-train-1/run.json",
        R"json({"format": 1, "refused": {"bad frame": 3}, "traces": [
    {"rank": 0, "loaded_by": "preload", "level": "kernels", "status": "closed"},
    {"rank": 1, "loaded_by": "environment", "level": "kernels", "status": "died",
     "detail": "killed by signal 9 (SIGKILL)",
     "notes": ["no kernels: CUPTI is in use by another tool in this process"]}]})json");
  const auto findings = CheckLastRun(Host());
  EXPECT_THAT(findings, Says(Severity::kOk, "ranktap-train-1: 2 traces"));
  EXPECT_THAT(findings, Says(Severity::kOk, "rank 0 loaded by preload, level kernels, closed"));
  EXPECT_THAT(findings, Says(Severity::kNote,
                             "rank 1 loaded by environment, level kernels, died: "
                             "killed by signal 9"));
  EXPECT_THAT(findings, Says(Severity::kProblem, "rank 1: no kernels: CUPTI is in use"));
  EXPECT_THAT(findings, Advises("end the other tool"));
  EXPECT_THAT(findings, Says(Severity::kNote, "without LD_PRELOAD there is no hook for PyTorch"));
  EXPECT_THAT(findings, Says(Severity::kWarning, "turned away: bad frame, 3 times"));
}

TEST_F(DoctorTest, ARunWithoutTracesOrThatCannotBeReadIsAProblem) {
  Write("/runs/ranktap-train-1/run.json", R"({"format": 1, "traces": []})");
  EXPECT_THAT(CheckLastRun(Host()),
              Says(Severity::kProblem, "no process of the command used CUDA"));
  Write("/runs/ranktap-train-1/run.json", "{");
  EXPECT_THAT(CheckLastRun(Host()), Says(Severity::kProblem, "not a JSON object"));
  HostView host = Host();
  host.run = "/nowhere";
  EXPECT_THAT(CheckLastRun(host), Says(Severity::kProblem, "/nowhere/run.json cannot be read"));
}

}  // namespace
}  // namespace ranktap::collector
