#include "tests/fakes/machine/function.h"

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "tests/fakes/machine/announce.h"
#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/memory.h"

namespace ranktap::standin {
namespace {

constexpr uint32_t kFunctionMagic = Function{}.magic;
constexpr uint32_t kModuleMagic = Module{}.magic;
constexpr uint32_t kFatbinWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
// A PTX compilation takes about this long per kilobyte on a real driver.
constexpr uint64_t kCompileNs = 2'000'000;

struct Variable {
  uint64_t address;
  size_t bytes;
};

struct Code {
  std::mutex mutex;
  std::set<const void*> handles;
  std::map<std::pair<const Module*, std::string>, Function*> functions;
  std::map<std::pair<const Module*, std::string>, Variable> variables;
  uint32_t next_module = 1;
};

Code& TheCode() {
  static Code* code = new Code;
  return *code;
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 1469598103934665603ull;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return hash;
}

bool IsElf(const void* image) { return memcmp(image, ELFMAG, SELFMAG) == 0; }

struct ImageText {
  const void* start = nullptr;
  size_t bytes = 0;
  bool ptx = false;
};

ImageText ReadImage(const void* image) {
  uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  if (magic == kFatbinWrapperMagic) {
    const void* inner;
    memcpy(&inner, static_cast<const char*>(image) + 8, sizeof inner);
    return ReadImage(inner);
  }
  if (magic == kFatbinMagic) {
    uint16_t header;
    uint64_t body;
    memcpy(&header, static_cast<const char*>(image) + 6, sizeof header);
    memcpy(&body, static_cast<const char*>(image) + 8, sizeof body);
    return {image, header + body, false};
  }
  if (IsElf(image)) {
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    return {image, header.e_shoff + uint64_t{1} * header.e_shentsize * header.e_shnum, false};
  }
  const char* text = static_cast<const char*>(image);
  size_t length = strnlen(text, 64 << 20);
  bool ptx = std::string_view(text, length).find(".version") != std::string_view::npos;
  return ptx ? ImageText{image, length, true} : ImageText{};
}

// Registers and shared memory of a kernel as the cubin's section headers give them.
bool ReadCubin(const void* image, const std::string& kernel, Function* function) {
  const char* base = static_cast<const char*>(image);
  Elf64_Ehdr header;
  memcpy(&header, base, sizeof header);
  auto section = [&](unsigned index) {
    Elf64_Shdr found;
    memcpy(&found, base + header.e_shoff + size_t{index} * header.e_shentsize, sizeof found);
    return found;
  };
  const char* names = base + section(header.e_shstrndx).sh_offset;
  bool any = false;
  for (unsigned index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr found = section(index);
    std::string_view name = names + found.sh_name;
    if (name == ".text." + kernel) {
      any = true;
      function->registers = found.sh_info >> 24;
    } else if (name == ".nv.shared." + kernel) {
      function->static_shared = static_cast<uint32_t>(found.sh_size);
    }
  }
  return any;
}

bool HasPtxEntry(const Module& module, const std::string& kernel) {
  std::string_view text(static_cast<const char*>(module.image), module.bytes);
  for (size_t at = text.find(kernel); at != std::string_view::npos;
       at = text.find(kernel, at + 1)) {
    size_t line = text.rfind('\n', at);
    std::string_view before = text.substr(line == std::string_view::npos ? 0 : line + 1,
                                          at - (line == std::string_view::npos ? 0 : line + 1));
    char after = at + kernel.size() < text.size() ? text[at + kernel.size()] : 0;
    if (before.find(".entry") != std::string_view::npos && (after == '(' || after == '\n')) {
      return true;
    }
  }
  return false;
}

template <typename Object>
Object* KnownObject(const void* handle, uint32_t magic) {
  std::lock_guard lock(TheCode().mutex);
  if (!TheCode().handles.contains(handle)) return nullptr;
  Object* object = static_cast<Object*>(const_cast<void*>(handle));
  return object->magic == magic ? object : nullptr;
}

void AnnounceModule(const Module& module, ResourceChange change) {
  Context* context = CurrentThread().current();
  if (context == nullptr) return;
  Resource resource = DescribeContext(*context, change);
  resource.module_id = module.id;
  resource.module_image = module.image;
  resource.module_bytes = module.bytes;
  Announce(resource);
}

}  // namespace

Module* LoadModule(const void* image) {
  Overhead overhead{OverheadKind::kModuleLoading, DeviceNow(), 0,
                    CurrentThread().correlation,  ThreadId(),  "module"};
  ImageText text = ReadImage(image);
  if (text.start == nullptr) return nullptr;
  Module* module = new Module;
  module->image = text.start;
  module->bytes = text.bytes;
  module->is_ptx = text.ptx;
  {
    std::lock_guard lock(TheCode().mutex);
    module->id = TheCode().next_module++;
    TheCode().handles.insert(module);
  }
  if (text.ptx) {
    const Context* context = CurrentThread().current();
    uint64_t start = DeviceNow();
    WaitUntilDevice(start + kCompileNs);
    Announce(Compilation{context == nullptr ? 0 : context->device, CurrentThread().correlation,
                         ThreadId(), start, DeviceNow()});
  }
  AnnounceModule(*module, ResourceChange::kModuleLoaded);
  overhead.end_ns = DeviceNow();
  Announce(overhead);
  return module;
}

void UnloadModule(Module* module) {
  AnnounceModule(*module, ResourceChange::kModuleUnloadStarting);
  module->alive = false;
}

Module* AsModule(const void* handle) {
  Module* module = KnownObject<Module>(handle, kModuleMagic);
  return module != nullptr && module->alive ? module : nullptr;
}

Function* FindFunction(Module* module, const char* name) {
  std::lock_guard lock(TheCode().mutex);
  Function*& function = TheCode().functions[{module, name}];
  if (function != nullptr) return function;
  Function made;
  uint64_t hash = HashOf(name);
  made.registers = static_cast<uint32_t>(16 + hash % 14 * 8);
  made.module = module;
  bool exists = true;
  if (module->is_ptx) exists = HasPtxEntry(*module, name);
  if (IsElf(module->image)) exists = ReadCubin(module->image, name, &made);
  if (!exists) {
    TheCode().functions.erase({module, name});
    return nullptr;
  }
  made.name = strdup(name);
  function = new Function(made);
  TheCode().handles.insert(function);
  return function;
}

Function* AsFunction(const void* handle) { return KnownObject<Function>(handle, kFunctionMagic); }

uint64_t FindVariable(Module* module, const char* name, size_t bytes_if_new, size_t* bytes) {
  std::lock_guard lock(TheCode().mutex);
  auto found = TheCode().variables.find({module, name});
  if (found != TheCode().variables.end()) {
    *bytes = found->second.bytes;
    return found->second.address;
  }
  const Context* context = CurrentThread().current();
  if (bytes_if_new == 0 || context == nullptr) return 0;
  Allocation wanted, made;
  wanted.bytes = bytes_if_new;
  wanted.kind = MemoryKind::kDeviceStatic;
  wanted.device = context->device;
  if (!Allocate(wanted, &made)) return 0;
  TheCode().variables[{module, name}] = {made.address, bytes_if_new};
  *bytes = bytes_if_new;
  return made.address;
}

}  // namespace ranktap::standin
