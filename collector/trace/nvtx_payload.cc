#include "collector/trace/nvtx_payload.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace ranktap::collector {
namespace {

// nvToolsExtPayload.h, compat id 0x0104.
constexpr uint64_t kPointerFlags = 0xe;  // POINTER, OFFSET_FROM_BASE, OFFSET_FROM_HERE
constexpr uint64_t kArrayFlags = 7 << 4;
constexpr uint64_t kFixedArray = 1 << 4, kZeroTerminated = 2 << 4;
constexpr uint64_t kRawSchema = proto::kBytesSchema;
constexpr uint64_t kCString = 75, kCStringUtf8 = 76;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxFields = 256;
constexpr size_t kMaxArrayShown = 64;

enum class Form : uint8_t { kNone, kUnsigned, kSigned, kFloat, kCharacter, kAddress };
struct EntryType {
  uint8_t bytes;
  Form form;
};

EntryType TypeOf(uint64_t type) {
  switch (type) {
    case 1:   // CHAR
    case 25:  // CHAR8
      return {1, Form::kCharacter};
    case 2:   // UCHAR
    case 12:  // UINT8
    case 32:  // BYTE
      return {1, Form::kUnsigned};
    case 11:  // INT8
      return {1, Form::kSigned};
    case 3:   // SHORT
    case 13:  // INT16
      return {2, Form::kSigned};
    case 4:   // USHORT
    case 14:  // UINT16
    case 26:  // CHAR16
      return {2, Form::kUnsigned};
    case 5:   // INT
    case 15:  // INT32
      return {4, Form::kSigned};
    case 6:   // UINT
    case 16:  // UINT32
    case 24:  // WCHAR
    case 27:  // CHAR32
    case 68:  // CATEGORY
    case 69:  // COLOR_ARGB
    case 71:  // PID_UINT32
    case 73:  // TID_UINT32
      return {4, Form::kUnsigned};
    case 7:   // LONG
    case 9:   // LONGLONG
    case 17:  // INT64
      return {8, Form::kSigned};
    case 8:   // ULONG
    case 10:  // ULONGLONG
    case 18:  // UINT64
    case 22:  // SIZE
    case 70:  // SCOPE_ID
    case 72:  // PID_UINT64
    case 74:  // TID_UINT64
      return {8, Form::kUnsigned};
    case 19:  // FLOAT
    case 43:  // FLOAT32
      return {4, Form::kFloat};
    case 20:  // DOUBLE
    case 44:  // FLOAT64
      return {8, Form::kFloat};
    case 23:  // ADDRESS
    case 77:  // CSTRING_UTF16
    case 78:  // CSTRING_UTF32
    case 80:  // REGISTERED_STRING_HANDLE
      return {8, Form::kAddress};
    default:
      return {0, Form::kNone};
  }
}

uint64_t Load(std::span<const std::byte> bytes, size_t size) {
  uint64_t value = 0;
  const size_t known = std::min({size, bytes.size(), sizeof(value)});
  if (known > 0) std::memcpy(&value, bytes.data(), known);
  return value;
}

PayloadValue ValueOf(EntryType type, std::span<const std::byte> bytes) {
  const uint64_t raw = Load(bytes, type.bytes);
  const int unused = 64 - 8 * type.bytes;
  switch (type.form) {
    case Form::kSigned:
      return static_cast<int64_t>(raw << unused) >> unused;
    case Form::kFloat:
      if (type.bytes == 4) {
        return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(raw)));
      }
      return std::bit_cast<double>(raw);
    case Form::kCharacter:
      return std::string(1, static_cast<char>(raw));
    default:
      return raw;
  }
}

std::string TextOf(const PayloadValue& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

class SchemaDecoder {
 public:
  SchemaDecoder(const Dictionary& dictionary, uint32_t domain, std::vector<PayloadField>* fields)
      : dictionary_(dictionary), domain_(domain), fields_(fields) {}

  void Decode(uint64_t schema_id, std::span<const std::byte> bytes, const std::string& prefix,
              int depth) {
    const v1::PayloadSchema* const schema = dictionary_.Schema(domain_, schema_id);
    if (schema == nullptr || depth > kMaxDepth) return;
    size_t offset = 0;
    for (int i = 0; i < schema->entries_size(); ++i) {
      const v1::PayloadEntry& entry = schema->entries(i);
      const auto size = SizeOf(entry, bytes, &offset);
      if (!size || *size > bytes.size() - offset || fields_->size() >= kMaxFields) return;
      const std::string name =
          prefix + (entry.name().empty() ? fmt::format("field {}", i) : entry.name());
      DecodeEntry(entry, bytes.subspan(offset, *size), name, depth);
      offset += *size;
    }
  }

 private:
  // Bytes of the entry, and where it begins (moved up to its alignment, or where it says).
  std::optional<size_t> SizeOf(const v1::PayloadEntry& entry, std::span<const std::byte> bytes,
                               size_t* offset) {
    const size_t element = ElementBytes(entry);
    // Sizes are the program's word; no product of two of them may overflow.
    if (element == 0 || element > bytes.size()) return std::nullopt;
    const size_t alignment = Alignment(entry);
    if (entry.offset() != 0) {
      *offset = entry.offset();
    } else {
      *offset = (*offset + alignment - 1) / alignment * alignment;
    }
    if (*offset > bytes.size()) return std::nullopt;
    if ((entry.flags() & kPointerFlags) != 0) return element;
    switch (entry.flags() & kArrayFlags) {
      case 0:
        return element;
      case kFixedArray:
        if (entry.array_or_union_detail() > bytes.size()) return std::nullopt;
        return element * entry.array_or_union_detail();
      case kZeroTerminated: {
        if (element > sizeof(uint64_t)) return std::nullopt;
        size_t size = element;
        while (*offset + size <= bytes.size() &&
               Load(bytes.subspan(*offset + size - element), element) != 0) {
          size += element;
        }
        return size;
      }
      default:
        return std::nullopt;  // a length in another entry: only in schemas of dynamic layout
    }
  }

  size_t ElementBytes(const v1::PayloadEntry& entry) const {
    if ((entry.flags() & kPointerFlags) != 0) return 8;
    if (IsFixedText(entry)) return entry.array_or_union_detail();
    if (entry.type() == kCString || entry.type() == kCStringUtf8) return 8;
    if (const size_t bytes = TypeOf(entry.type()).bytes) return bytes;
    if (const auto* const nested = dictionary_.Schema(domain_, entry.type())) {
      return nested->payload_static_size();
    }
    const auto* const enumeration = dictionary_.Enum(domain_, entry.type());
    return enumeration == nullptr ? 0 : enumeration->size();
  }
  size_t Alignment(const v1::PayloadEntry& entry) const {
    if (IsFixedText(entry)) return 1;
    const size_t bytes = ElementBytes(entry);
    return bytes == 1 || bytes == 2 || bytes == 4 ? bytes : 8;
  }
  // A C string with a length lies in the payload itself.
  static bool IsFixedText(const v1::PayloadEntry& entry) {
    return (entry.type() == kCString || entry.type() == kCStringUtf8) &&
           entry.array_or_union_detail() != 0 && (entry.flags() & kArrayFlags) == 0;
  }

  void Add(const std::string& name, PayloadValue value) {
    fields_->push_back({name, std::move(value)});
  }

  void DecodeEntry(const v1::PayloadEntry& entry, std::span<const std::byte> bytes,
                   const std::string& name, int depth) {
    const EntryType type = TypeOf(entry.type());
    if ((entry.flags() & kPointerFlags) != 0 || type.form == Form::kAddress) return;
    const bool is_text =
        IsFixedText(entry) || (type.form == Form::kCharacter && (entry.flags() & kArrayFlags) != 0);
    if (is_text) {
      const auto* text = reinterpret_cast<const char*>(bytes.data());
      return Add(name, std::string(text, strnlen(text, bytes.size())));
    }
    if (const auto* const enumeration = dictionary_.Enum(domain_, entry.type())) {
      return AddEnum(*enumeration, bytes, name);
    }
    if (type.form == Form::kNone) return Decode(entry.type(), bytes, name + ".", depth + 1);
    if ((entry.flags() & kArrayFlags) == 0) return Add(name, ValueOf(type, bytes));
    std::string list;
    for (size_t at = 0; at + type.bytes <= bytes.size(); at += type.bytes) {
      if (at / type.bytes == kMaxArrayShown) {
        list += ", ...";
        break;
      }
      list += (at == 0 ? "" : ", ") + TextOf(ValueOf(type, bytes.subspan(at)));
    }
    Add(name, "[" + list + "]");
  }

  void AddEnum(const v1::PayloadEnum& enumeration, std::span<const std::byte> bytes,
               const std::string& name) {
    const uint64_t value = Load(bytes, std::min<size_t>(8, enumeration.size()));
    for (const v1::PayloadEnumValue& known : enumeration.values()) {
      if (known.value() == value && !known.is_flag()) return Add(name, known.name());
    }
    std::string flags;
    for (const v1::PayloadEnumValue& known : enumeration.values()) {
      if (!known.is_flag() || (value & known.value()) == 0) continue;
      flags += (flags.empty() ? "" : "|") + known.name();
    }
    if (flags.empty()) return Add(name, value);
    Add(name, flags);
  }

  const Dictionary& dictionary_;
  uint32_t domain_;
  std::vector<PayloadField>* fields_;
};

void DecodeScalar(uint32_t type, uint64_t value, std::vector<PayloadField>* fields) {
  switch (type) {
    case 1:  // NVTX_PAYLOAD_TYPE_UNSIGNED_INT64
      return fields->push_back({"payload", value});
    case 2:  // INT64
      return fields->push_back({"payload", static_cast<int64_t>(value)});
    case 3:  // DOUBLE
      return fields->push_back({"payload", std::bit_cast<double>(value)});
    case 4:  // UNSIGNED_INT32
      return fields->push_back({"payload", uint64_t{static_cast<uint32_t>(value)}});
    case 5:  // INT32
      return fields->push_back({"payload", int64_t{static_cast<int32_t>(value)}});
    case 6:  // FLOAT
      return fields->push_back(
          {"payload", double{std::bit_cast<float>(static_cast<uint32_t>(value))}});
    default:
      return;
  }
}

}  // namespace

void DecodeBySchema(const Dictionary& dictionary, uint32_t domain, uint64_t schema_id,
                    std::span<const std::byte> bytes, std::vector<PayloadField>* fields) {
  if (schema_id == kRawSchema) return;
  const EntryType plain = TypeOf(schema_id);
  if (plain.form != Form::kNone && plain.form != Form::kAddress) {
    if (bytes.size() >= plain.bytes) fields->push_back({"payload", ValueOf(plain, bytes)});
    return;
  }
  SchemaDecoder(dictionary, domain, fields).Decode(schema_id, bytes, "", 0);
}

std::vector<PayloadField> DecodePayload(const Trace& trace, const Ranges& ranges, size_t row) {
  std::vector<PayloadField> fields;
  DecodeScalar(ranges.payload_type.At(row), ranges.payload.At(row), &fields);
  const uint32_t index = ranges.inline_payload.At(row);
  if (index == 0 || index > trace.payloads.size()) return fields;
  auto rest = std::as_bytes(std::span(trace.payloads[index - 1]));
  while (rest.size() >= 16) {
    const uint64_t schema = Load(rest, 8), size = Load(rest.subspan(8), 8);
    rest = rest.subspan(16);
    if (size > rest.size()) break;
    DecodeBySchema(trace.dictionary, ranges.domain[row], schema, rest.first(size), &fields);
    rest = rest.subspan(std::min<size_t>(rest.size(), (size + 7) / 8 * 8));
  }
  return fields;
}

}  // namespace ranktap::collector
