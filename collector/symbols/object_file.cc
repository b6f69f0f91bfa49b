#include "collector/symbols/object_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "collector/file/file_descriptor.h"
#include "collector/file/owned_file.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using Scopes = std::unique_ptr<Dwarf_Die, decltype(&std::free)>;

std::string Readable(const char* name) {
  return name == nullptr ? std::string() : ReadableKernelName(name);
}

// A function's full name is its linkage name, which the out-of-line definition may hold.
std::string NameOf(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned code : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, code, &attribute) != nullptr) {
      return Readable(dwarf_formstring(&attribute));
    }
  }
  return Readable(dwarf_diename(die));
}

bool IsFunction(Dwarf_Die* die) {
  const int tag = dwarf_tag(die);
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

struct Place {
  std::string file;
  uint32_t line = 0;
};

// Compilers write names relative to the directory they ran in.
std::string Absolute(const char* file, const char* directory) {
  if (file == nullptr) return {};
  if (file[0] == '/' || directory == nullptr) return file;
  return (std::filesystem::path(directory) / file).lexically_normal().string();
}

// The place of the call that inlined the function `die`.
Place CallSiteOf(Dwarf_Die* die, Dwarf_Files* files, const char* directory) {
  Place place;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) == 0) {
    place.file = Absolute(dwarf_filesrc(files, value, nullptr, nullptr), directory);
  }
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value) == 0) {
    place.line = static_cast<uint32_t>(value);
  }
  return place;
}

// The scopes around an address, innermost first, out to the real function. Asked twice: around the
// innermost one's own entry, so that the chain is that of the code and not of an abstract origin.
int FindScopes(Dwarf_Die* unit, Dwarf_Addr address, Scopes* scopes) {
  Dwarf_Die* found = nullptr;
  const int around = dwarf_getscopes(unit, address, &found);
  scopes->reset(found);
  if (around <= 0) return 0;
  Dwarf_Die innermost = *found;
  found = nullptr;
  const int count = dwarf_getscopes_die(&innermost, &found);
  scopes->reset(found);
  return std::max(count, 0);
}

std::vector<SourceFrame> FramesFromDebugInformation(Dwarf_Die* unit, Dwarf_Addr address,
                                                    Place place) {
  std::vector<SourceFrame> frames;
  Dwarf_Files* files = nullptr;
  size_t file_count = 0;
  Scopes scopes(nullptr, &std::free);
  const int count = FindScopes(unit, address, &scopes);
  if (count == 0 || dwarf_getsrcfiles(unit, &files, &file_count) != 0) return frames;
  Dwarf_Attribute attribute;
  const char* const directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  for (int i = 0; i < count; ++i) {
    Dwarf_Die* const die = scopes.get() + i;
    if (!IsFunction(die)) continue;
    const bool inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
    frames.push_back({.function = NameOf(die),
                      .file = std::move(place.file),
                      .line = place.line,
                      .inlined = inlined});
    if (!inlined) break;
    place = CallSiteOf(die, files, directory);
  }
  return frames;
}

Place LineOf(Dwfl_Module* module, Dwarf_Addr address) {
  Place place;
  Dwfl_Line* const line = dwfl_module_getsrc(module, address);
  int number = 0;
  const char* const file =
      line == nullptr ? nullptr : dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (file != nullptr) {
    place = {.file = Absolute(file, dwfl_line_comp_dir(line)),
             .line = static_cast<uint32_t>(number)};
  }
  return place;
}

}  // namespace

struct ObjectFile::Session {
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
  uint64_t bias = 0;       // libdwfl's address - address in the file
  std::string debug_path;  // where debug information is looked for
  char* debug_path_start = nullptr;
  Dwfl_Callbacks callbacks{};

  ~Session() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
};

ObjectFile::ObjectFile(std::unique_ptr<Session> session) : session_(std::move(session)) {}
ObjectFile::~ObjectFile() = default;

std::unique_ptr<ObjectFile> ObjectFile::Open(const std::string& path,
                                             const std::vector<std::string>& debug_directories) {
  Result<FileDescriptor> opened = OpenRegularFile(path);  // a path that a trace names
  if (!opened) return nullptr;
  FileDescriptor file = std::move(*opened);
  auto session = std::make_unique<Session>();
  // "-": without reading whole files for their checksum; ":" separates.
  session->debug_path = "-:.debug:/usr/lib/debug";
  for (const std::string& directory : debug_directories) session->debug_path += ":" + directory;
  session->debug_path_start = session->debug_path.data();
  session->callbacks = {.find_elf = &dwfl_build_id_find_elf,
                        .find_debuginfo = &dwfl_standard_find_debuginfo,
                        .section_address = &dwfl_offline_section_address,
                        .debuginfo_path = &session->debug_path_start};
  session->dwfl = dwfl_begin(&session->callbacks);
  if (session->dwfl == nullptr) return nullptr;
  session->module = dwfl_report_offline(session->dwfl, path.c_str(), path.c_str(), file.get());
  if (session->module == nullptr) return nullptr;
  (void)file.Take();  // libdwfl's now
  dwfl_report_end(session->dwfl, nullptr, nullptr);
  GElf_Addr bias = 0;
  if (dwfl_module_getelf(session->module, &bias) == nullptr) return nullptr;
  session->bias = bias;
  return std::unique_ptr<ObjectFile>(new ObjectFile(std::move(session)));
}

std::vector<SourceFrame> ObjectFile::At(uint64_t file_address) const {
  Dwfl_Module* const module = session_->module;
  const Dwarf_Addr address = file_address + session_->bias;
  Place place = LineOf(module, address);
  Dwarf_Addr bias = 0;
  std::vector<SourceFrame> frames;
  if (Dwarf_Die* const unit = dwfl_module_addrdie(module, address, &bias)) {
    frames = FramesFromDebugInformation(unit, address - bias, place);
  }
  if (!frames.empty()) return frames;
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* const name =
      dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name == nullptr) return frames;
  frames.push_back({.function = Readable(name), .file = std::move(place.file), .line = place.line});
  return frames;
}

std::string BuildIdOf(const std::string& path) {
  const Result<FileDescriptor> file = OpenRegularFile(path);
  if (!file) return {};
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(file->get(), ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr) return {};
  const void* bytes = nullptr;
  const ssize_t count = dwelf_elf_gnu_build_id(elf, &bytes);
  std::string id;
  if (count > 0) id.assign(static_cast<const char*>(bytes), static_cast<size_t>(count));
  elf_end(elf);
  return id;
}

}  // namespace ranktap::collector
