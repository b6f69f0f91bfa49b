#include "collector/launch/injection.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <gelf.h>
#include <libelf.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "collector/file/owned_file.h"
#include "proto/environment.h"

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

// The library, or the same below preload/ beside it: what an outer `ranktap run` has set.
bool IsOurs(std::string_view path, const std::string& library) {
  const std::filesystem::path ours(library);
  return path == library || (path.starts_with((ours.parent_path() / "preload/").string()) &&
                             path.ends_with("/" + ours.filename().string()));
}

void PlanVariable(const std::vector<std::string_view>& environment, const std::string& name,
                  const std::string& library, std::string_view consequence, InjectionPlan* plan) {
  const auto present = FindVariable(environment, name);
  if (!present || present->empty() || IsOurs(*present, library)) {
    plan->variables.emplace_back(name, library);
    return;
  }
  plan->messages.push_back(fmt::format(
      "{} is set to {} by another tool and is left alone: {}; unset it to trace with ranktap", name,
      *present, consequence));
}

std::string ChosenByLoader(const std::string& library) {
  const std::filesystem::path path(library);
  return (path.parent_path() / "preload" / "$LIB" / path.filename()).string();
}

void PlanPreload(const std::vector<std::string_view>& environment, const std::string& library,
                 InjectionPlan* plan) {
  if (library.find_first_of(": ") != std::string::npos) {
    plan->messages.push_back(fmt::format(
        "LD_PRELOAD cannot name {}, its path has a colon or a space: not preloaded", library));
    return;
  }
  const std::string_view present = FindVariable(environment, "LD_PRELOAD").value_or("");
  if (Lists(present, library) || Lists(present, ChosenByLoader(library))) return;
  plan->variables.emplace_back("LD_PRELOAD",
                               present.empty() ? library : std::string(present) + ":" + library);
}

// The facts that an ELF file tells about its program.
struct Program {
  bool has_64_bits = false;
  uint16_t machine = EM_NONE;
  std::string interpreter;  // empty: statically linked; read for programs of 64 bits only
};

bool ReadAt(int fd, off_t offset, void* target, size_t bytes) {
  return ::pread(fd, target, bytes, offset) == static_cast<ssize_t>(bytes);
}

// nullopt: no ELF file.
std::optional<Program> ReadProgram(const std::string& path) {
  const Result<FileDescriptor> file = OpenRegularFile(path);
  Elf64_Ehdr header{};
  // The machine lies at the same place in files of 32 bits, which are longer than what is read.
  if (!file || !ReadAt(file->get(), 0, &header, sizeof(Elf32_Ehdr)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  Program program{.has_64_bits = header.e_ident[EI_CLASS] == ELFCLASS64,
                  .machine = header.e_machine,
                  .interpreter = {}};
  if (!program.has_64_bits || !ReadAt(file->get(), 0, &header, sizeof(header)) ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return program;
  }
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof(segment));
    if (!ReadAt(file->get(), offset, &segment, sizeof(segment)) || segment.p_type != PT_INTERP) {
      continue;
    }
    std::array<char, 256> name{};
    (void)::pread(file->get(), name.data(), std::min<size_t>(segment.p_filesz, name.size() - 1),
                  static_cast<off_t>(segment.p_offset));
    program.interpreter = name.data();
  }
  return program;
}

// The kernel says AT_SECURE: the ids change, or somebody who is not root gets capabilities.
bool RaisesPrivileges(const std::string& executable, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(executable.c_str(), "security.capability", nullptr, 0) > 0;
}

// Why this library cannot be loaded here; empty: it can, as far as its file tells.
std::string WhyNotLoadable(const std::filesystem::path& library) {
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    return fmt::format("{} is missing; bin/ and lib/ of a build belong together", library.string());
  }
  const std::optional<Program> program = ReadProgram(library);
  if (!program || !program->has_64_bits || program->machine != EM_X86_64) {
    return fmt::format("{} is not a library for this processor", library.string());
  }
  struct statvfs file_system {};
  if (::statvfs(library.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOEXEC) != 0) {
    return fmt::format("{} lies on a file system that is mounted noexec", library.string());
  }
  return {};
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
  plan.library = request.library;
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

void ChooseByLoader(const std::string& library,
                    std::vector<std::pair<std::string, std::string>>* variables) {
  // The stub does nothing in this process.
  const std::string chosen = ChosenByLoader(library);
  void* const opened = ::dlopen(chosen.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) return;
  link_map* map = nullptr;
  const std::string found = ::dlinfo(opened, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : library;
  ::dlclose(opened);
  for (auto& [name, value] : *variables) {
    // Ours is the whole or the last of the list.
    if (name == "LD_PRELOAD" && value.ends_with(library)) {
      value.replace(value.size() - library.size(), library.size(), chosen);
    } else if (value == library) {
      value = found;
    }
  }
}

std::string InjectionObstacle(const std::string& executable) {
  struct stat status {};
  if (::stat(executable.c_str(), &status) != 0) return {};
  if (RaisesPrivileges(executable, status)) {
    return fmt::format("{} runs with raised privileges (AT_SECURE): the loader drops the agent",
                       executable);
  }
  const std::optional<Program> program = ReadProgram(executable);
  if (!program) return {};
  if (program->machine == EM_386 || !program->has_64_bits) {
    return fmt::format("{} is a program of 32 bits: it can load no agent", executable);
  }
  if (program->machine != EM_X86_64) {
    return fmt::format("{} is for another processor: it can load no agent", executable);
  }
  if (program->interpreter.empty()) {
    return fmt::format("{} is statically linked: it can load no agent", executable);
  }
  if (program->interpreter.find("ld-musl") != std::string::npos) {
    return fmt::format("{} is linked with musl: it can load no agent, which needs glibc",
                       executable);
  }
  return {};
}

bool WantsToBeFirst(const std::string& executable) {
  const Result<FileDescriptor> file = OpenRegularFile(executable);
  if (!file || elf_version(EV_CURRENT) == EV_NONE) return false;
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file->get(), ELF_C_READ, nullptr),
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
  *why = WhyNotLoadable(library);
  if (why->empty()) *why = WhyNotLoadable(library.parent_path() / "libranktap_agent.so");
  return why->empty() && !error ? library.string() : std::string();
}

std::string EnvironmentHelp() {
  std::string text = "Environment of the traced processes:\n";
  for (const proto::EnvVar& variable : proto::kEnvVars) {
    text += fmt::format("  {:<26}  {}\n", variable.name, variable.help);
  }
  return text;
}

}  // namespace ranktap::collector
