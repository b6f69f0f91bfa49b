// Thrift's compact protocol, as much of it as Parquet's headers need: structs are written field by
// field, in the order of their numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// Appends an unsigned number, seven bits a byte, the least first.
inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
inline void AppendZigzag(int64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63), out);
}

class ThriftStruct {
 public:
  ThriftStruct& I16(int field, int16_t value) { return Number(field, kI16, value); }
  ThriftStruct& I32(int field, int32_t value) { return Number(field, kI32, value); }
  ThriftStruct& I64(int field, int64_t value) { return Number(field, kI64, value); }
  ThriftStruct& Bool(int field, bool value) {
    Begin(field, value ? kTrue : kFalse);
    return *this;
  }
  ThriftStruct& Binary(int field, std::string_view bytes) {
    Begin(field, kBinary);
    AppendText(bytes);
    return *this;
  }
  ThriftStruct& Struct(int field, const ThriftStruct& value) {
    Begin(field, kStruct);
    bytes_ += value.Bytes();
    return *this;
  }
  ThriftStruct& Structs(int field, const std::vector<ThriftStruct>& values) {
    BeginList(field, kStruct, values.size());
    for (const ThriftStruct& value : values) bytes_ += value.Bytes();
    return *this;
  }
  ThriftStruct& I32s(int field, const std::vector<int32_t>& values) {
    BeginList(field, kI32, values.size());
    for (const int32_t value : values) AppendZigzag(value, &bytes_);
    return *this;
  }
  ThriftStruct& Texts(int field, std::initializer_list<std::string_view> values) {
    BeginList(field, kBinary, values.size());
    for (const std::string_view value : values) AppendText(value);
    return *this;
  }
  // The fields and the byte that ends them.
  std::string Bytes() const { return bytes_ + '\0'; }

 private:
  enum Type : uint8_t {
    kTrue = 1,
    kFalse = 2,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kBinary = 8,
    kList = 9,
    kStruct = 12,
  };

  ThriftStruct& Number(int field, Type type, int64_t value) {
    Begin(field, type);
    AppendZigzag(value, &bytes_);
    return *this;
  }
  void Begin(int field, Type type) {
    const int delta = field - last_;
    last_ = field;
    if (delta > 0 && delta < 16) {
      bytes_.push_back(static_cast<char>(delta << 4 | type));
    } else {
      bytes_.push_back(static_cast<char>(type));
      AppendZigzag(field, &bytes_);
    }
  }
  void BeginList(int field, Type type, size_t count) {
    Begin(field, kList);
    bytes_.push_back(static_cast<char>((count < 15 ? count << 4 : 0xf0) | type));
    if (count >= 15) AppendVarint(count, &bytes_);
  }
  void AppendText(std::string_view text) {
    AppendVarint(text.size(), &bytes_);
    bytes_ += text;
  }

  std::string bytes_;
  int last_ = 0;
};

}  // namespace ranktap::collector
