#include "tests/unit/collector/parquet/parquet_reader.h"

#include <zstd.h>

#include <cstring>
#include <stdexcept>

namespace ranktap::collector {
namespace {

void Check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}
  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }
  std::string_view Take(size_t count) {
    Check(count <= rest_.size(), "the file ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint8_t Byte() { return static_cast<uint8_t>(Take(1)[0]); }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      Check(shift < 64, "a varint of more than ten bytes");
      const uint8_t byte = Byte();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  int64_t Zigzag() {
    const uint64_t value = Varint();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  uint32_t Length() {
    uint32_t value = 0;
    std::memcpy(&value, Take(4).data(), 4);
    return value;
  }

 private:
  std::string_view rest_;
};

ThriftValue ReadStruct(Bytes* in);

ThriftValue ReadValue(int type, Bytes* in) {
  ThriftValue value;
  switch (type) {
    case 1:
    case 2:
      value.number = type == 1;
      return value;
    case 4:
    case 5:
    case 6:
      value.number = in->Zigzag();
      return value;
    case 8:
      value.bytes = in->Take(in->Varint());
      return value;
    case 9: {
      const uint8_t head = in->Byte();
      const uint64_t count = head >> 4 == 15 ? in->Varint() : head >> 4;
      for (uint64_t i = 0; i < count; ++i) value.list.push_back(ReadValue(head & 15, in));
      return value;
    }
    case 12:
      return ReadStruct(in);
    default:
      throw std::runtime_error("a Thrift type that Parquet has not");
  }
}

ThriftValue ReadStruct(Bytes* in) {
  ThriftValue value;
  int field = 0;
  for (;;) {
    const uint8_t head = in->Byte();
    if (head == 0) return value;
    field = head >> 4 == 0 ? static_cast<int>(in->Zigzag()) : field + (head >> 4);
    Check(!value.Has(field), "a Thrift field comes twice");
    value.fields.emplace(field, ReadValue(head & 15, in));
  }
}

uint64_t Bits(std::string_view bytes, size_t at, int bits) {
  uint64_t value = 0;
  for (int i = 0; i < bits; ++i) {
    const size_t bit = at + static_cast<size_t>(i);
    value |= uint64_t{(static_cast<uint8_t>(bytes[bit / 8]) >> bit % 8) & 1u} << i;
  }
  return value;
}

std::vector<uint64_t> ReadRuns(Bytes* in, int bits, size_t count) {
  std::vector<uint64_t> values;
  while (values.size() < count) {
    const uint64_t head = in->Varint();
    Check(head >> 1 > 0, "an empty run");
    if ((head & 1) == 0) {
      const std::string_view value = in->Take(static_cast<size_t>(bits + 7) / 8);
      values.insert(values.end(), head >> 1, Bits(value, 0, bits));
      Check(values.size() <= count, "a repeated run is longer than its page");
    } else {
      const std::string_view packed = in->Take((head >> 1) * static_cast<size_t>(bits));
      for (uint64_t i = 0; i < (head >> 1) * 8; ++i) {
        const uint64_t value = Bits(packed, i * static_cast<size_t>(bits), bits);
        if (values.size() < count) {
          values.push_back(value);
        } else {
          Check(value == 0, "a run is not filled up with zeros");
        }
      }
    }
  }
  return values;
}

std::string Number(uint64_t value, size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

std::vector<std::string> ReadDeltas(Bytes* in, size_t count, size_t bytes) {
  const uint64_t block = in->Varint(), miniblocks = in->Varint();
  Check(block % 128 == 0 && block / miniblocks % 32 == 0, "blocks of a forbidden size");
  Check(in->Varint() == count, "another count of values than the page's");
  std::vector<std::string> values;
  auto value = static_cast<uint64_t>(in->Zigzag());
  if (count > 0) values.push_back(Number(value, bytes));
  while (values.size() < count) {
    const auto least = static_cast<uint64_t>(in->Zigzag());
    const std::string_view widths = in->Take(miniblocks);
    for (size_t m = 0; m < miniblocks && values.size() < count; ++m) {
      const int width = static_cast<uint8_t>(widths[m]);
      Check(width <= static_cast<int>(bytes) * 8, "wider than the type");
      const uint64_t size = block / miniblocks;
      const std::string_view packed = in->Take(size * static_cast<size_t>(width) / 8);
      for (size_t i = 0; i < size && values.size() < count; ++i) {
        value += least + Bits(packed, i * static_cast<size_t>(width), width);
        values.push_back(Number(value, bytes));
      }
    }
  }
  return values;
}

constexpr size_t kSizes[] = {0, 4, 8, 0, 0, 8, 0};  // of physical types

std::vector<std::string> ReadPlain(Bytes* in, int64_t type, size_t count) {
  std::vector<std::string> values;
  const std::string_view bits = type == 0 ? in->Take((count + 7) / 8) : std::string_view();
  for (size_t i = 0; i < count; ++i) {
    if (type == 0) {
      values.push_back(Number(Bits(bits, i, 1), 1));
    } else {
      values.emplace_back(in->Take(type == 6 ? in->Length() : kSizes[type]));
    }
  }
  return values;
}

class ChunkReader {
 public:
  ChunkReader(std::string_view file, const ThriftValue& chunk, const ThriftValue& element)
      : file_(file), about_(chunk[3]), type_(about_[1].number), nullable_(element[3].number == 1) {
    Check(type_ == element[1].number, "the chunk has another type than the schema");
    Check(about_[4].number == 6, "not ZSTD");
    chunk_.name = about_[3].list.at(0).bytes;
    Check(chunk_.name == element[4].bytes, "columns in another order than the schema's");
    for (const ThriftValue& encoding : about_[2].list) chunk_.encodings.push_back(encoding.number);
  }

  ParquetChunk Read() {
    const bool has_dictionary = about_.Has(11);
    const auto begin = static_cast<size_t>(about_[has_dictionary ? 11 : 9].number);
    Bytes pages(file_.substr(begin, static_cast<size_t>(about_[7].number)));
    int64_t raw = 0;
    const size_t stored = pages.size();
    while (!pages.empty()) {
      const bool is_first_data = !has_dictionary || stored != pages.size();
      Check(!is_first_data || chunk_.pages > 0 ||
                begin + stored - pages.size() == static_cast<size_t>(about_[9].number),
            "data pages begin elsewhere than the chunk says");
      raw += ReadPage(&pages);
    }
    Check(raw == about_[6].number, "another size than the chunk says");
    Check(static_cast<int64_t>(chunk_.cells.size()) == about_[5].number, "another count of values");
    const ThriftValue& statistics = about_[12];
    chunk_.null_count = statistics[3].number;
    if (statistics.Has(5)) chunk_.largest = statistics[5].bytes;
    if (statistics.Has(6)) chunk_.least = statistics[6].bytes;
    return std::move(chunk_);
  }

 private:
  int64_t ReadPage(Bytes* pages) {
    const size_t before = pages->size();
    const ThriftValue header = ReadStruct(pages);
    const auto header_bytes = static_cast<int64_t>(before - pages->size());
    const std::string_view stored = pages->Take(static_cast<size_t>(header[3].number));
    std::string content(static_cast<size_t>(header[2].number), '\0');
    Check(ZSTD_decompress(content.data(), content.size(), stored.data(), stored.size()) ==
              content.size(),
          "a page is not what ZSTD wrote");
    Bytes in(content);
    if (header[1].number == 2) {
      dictionary_ = ReadPlain(&in, type_, static_cast<size_t>(header[7][1].number));
    } else {
      ReadDataPage(header[5], &in);
    }
    Check(in.empty(), "bytes are left in a page");
    return header_bytes + header[2].number;
  }

  void ReadDataPage(const ThriftValue& header, Bytes* in) {
    ++chunk_.pages;
    const auto rows = static_cast<size_t>(header[1].number);
    std::vector<uint64_t> present(rows, 1);
    if (nullable_) {
      Bytes levels(in->Take(in->Length()));
      present = ReadRuns(&levels, 1, rows);
      Check(levels.empty(), "bytes are left behind the levels");
    }
    size_t count = 0;
    for (const uint64_t level : present) count += level;
    const std::vector<std::string> values = ReadValues(header[2].number, count, in);
    size_t next = 0;
    for (const uint64_t level : present) {
      chunk_.cells.push_back(level == 1 ? ParquetCell(values[next++]) : std::nullopt);
    }
  }

  std::vector<std::string> ReadValues(int64_t encoding, size_t count, Bytes* in) const {
    if (encoding == 0) return ReadPlain(in, type_, count);
    if (encoding == 5) return ReadDeltas(in, count, kSizes[type_]);
    Check(encoding == 8, "an encoding that nobody announced");
    std::vector<std::string> values;
    const int bits = in->Byte();
    for (const uint64_t index : ReadRuns(in, bits, count)) values.push_back(dictionary_.at(index));
    return values;
  }

  std::string_view file_;
  const ThriftValue& about_;
  int64_t type_;
  bool nullable_;
  ParquetChunk chunk_;
  std::vector<std::string> dictionary_;
};

}  // namespace

ParquetContent ReadParquet(std::string_view file) {
  Check(file.size() > 12 && file.starts_with("PAR1") && file.ends_with("PAR1"), "no Parquet file");
  Bytes tail(file.substr(file.size() - 8, 4));
  const size_t length = tail.Length();
  Bytes in(file.substr(file.size() - 8 - length, length));
  ParquetContent content;
  content.footer = ReadStruct(&in);
  Check(in.empty(), "bytes are left behind the footer");
  const std::vector<ThriftValue>& schema = content.footer[2].list;
  int64_t rows = 0;
  for (const ThriftValue& group : content.footer[4].list) {
    rows += group[3].number;
    std::vector<ParquetChunk>& chunks = content.row_groups.emplace_back();
    for (size_t i = 0; i < group[1].list.size(); ++i) {
      chunks.push_back(ChunkReader(file, group[1].list[i], schema.at(i + 1)).Read());
      Check(static_cast<int64_t>(chunks.back().cells.size()) == group[3].number,
            "a column of another length than its row group");
    }
  }
  Check(rows == content.footer[3].number, "another count of rows than the row groups'");
  return content;
}

}  // namespace ranktap::collector
