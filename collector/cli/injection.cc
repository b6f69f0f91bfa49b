#include "collector/cli/injection.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {
namespace {

// Whether a list separated by colons or spaces, as LD_PRELOAD is, has this item.
bool Lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(": "), list.size());
    if (list.substr(0, end) == item) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

void PlanVariable(const std::vector<std::string_view>& environment, const std::string& name,
                  const std::string& library, std::string_view consequence, InjectionPlan* plan) {
  const auto present = FindVariable(environment, name);
  if (!present || present->empty() || *present == library) {
    plan->variables.emplace_back(name, library);
    return;
  }
  plan->messages.push_back(fmt::format(
      "{} is set to {} by another tool and is left alone: {}; unset it to trace with ranktap", name,
      *present, consequence));
}

void PlanPreload(const std::vector<std::string_view>& environment, const std::string& library,
                 InjectionPlan* plan) {
  if (library.find_first_of(": ") != std::string::npos) {
    plan->messages.push_back(fmt::format(
        "LD_PRELOAD cannot name {}, its path has a colon or a space: not preloaded", library));
    return;
  }
  const std::string_view present = FindVariable(environment, "LD_PRELOAD").value_or("");
  if (Lists(present, library)) return;
  plan->variables.emplace_back("LD_PRELOAD",
                               present.empty() ? library : std::string(present) + ":" + library);
}

// Whether the ELF file asks for an interpreter; nullopt: not an ELF file of this machine.
std::optional<bool> HasInterpreter(int fd) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  const size_t bytes = segments.size() * sizeof(Elf64_Phdr);
  if (::pread(fd, segments.data(), bytes, static_cast<off_t>(header.e_phoff)) !=
      static_cast<ssize_t>(bytes)) {
    return std::nullopt;
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string_view> FindVariable(const std::vector<std::string_view>& environment,
                                             std::string_view name) {
  for (const std::string_view entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

InjectionPlan PlanInjection(const std::vector<std::string_view>& environment,
                            const InjectionRequest& request) {
  InjectionPlan plan;
  plan.variables.emplace_back("RANKTAP_SOCKET", request.socket);
  plan.variables.emplace_back("RANKTAP_LEVEL", request.level);
  plan.variables.insert(plan.variables.end(), request.settings.begin(), request.settings.end());
  PlanVariable(environment, "CUDA_INJECTION64_PATH", request.library,
               "the CUDA driver will load that tool only", &plan);
  PlanVariable(environment, "NVTX_INJECTION64_PATH", request.library,
               "NVTX ranges go to that tool only", &plan);
  if (request.preload) PlanPreload(environment, request.library, &plan);
  if (FindVariable(environment, "RANKTAP_DISABLE").value_or("0") == "1") {
    plan.messages.push_back("RANKTAP_DISABLE=1 is set: nothing will be traced");
  }
  return plan;
}

std::string InjectionObstacle(const std::string& executable) {
  const FileDescriptor file(::open(executable.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (::stat(executable.c_str(), &status) != 0) return {};
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
      ::getxattr(executable.c_str(), "security.capability", nullptr, 0) > 0) {
    return fmt::format("{} runs with raised privileges (AT_SECURE): the loader drops the agent",
                       executable);
  }
  if (file.valid() && HasInterpreter(file.get()) == false) {
    return fmt::format("{} is statically linked: it can load no agent", executable);
  }
  return {};
}

bool WantsToBeFirst(const std::string& executable) {
  const FileDescriptor file(::open(executable.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || elf_version(EV_CURRENT) == EV_NONE) return false;
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file.get(), ELF_C_READ, nullptr),
                                                elf_end);
  if (elf == nullptr) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    GElf_Dyn entry;
    for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
      if (entry.d_tag != DT_NEEDED) continue;
      const char* const name = elf_strptr(elf.get(), header.sh_link, entry.d_un.d_val);
      if (name == nullptr) continue;
      const std::string_view needed = name;
      if (needed.starts_with("libasan.so") || needed.starts_with("libclang_rt.asan")) return true;
    }
  }
  return false;
}

std::string FindAgentLibrary(std::string* why) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path library =
      (self.parent_path().parent_path() / "lib" / "libranktap.so").lexically_normal();
  if (!error && std::filesystem::exists(library, error)) return library.string();
  *why = fmt::format("{} is missing; bin/ and lib/ of a build belong together", library.string());
  return {};
}

}  // namespace ranktap::collector
