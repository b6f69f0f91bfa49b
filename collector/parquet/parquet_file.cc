#include "collector/parquet/parquet_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#include "collector/parquet/packed_numbers.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr int32_t kZstd = 6;
// Level 3 makes files of kernels 4 % smaller and takes a third longer.
constexpr int kLevel = 1;
// 1 MiB of numbers before they are encoded.
constexpr size_t kPageRows = 1u << 17;
enum PageKind : int32_t { kDataPage = 0, kDictionaryPage = 2 };

int32_t Code(ParquetEncoding encoding) { return static_cast<int32_t>(encoding); }

int32_t PhysicalType(ParquetType type) {
  switch (type) {
    case ParquetType::kBool:
      return 0;
    case ParquetType::kInt32:
      return 1;
    case ParquetType::kInt64:
    case ParquetType::kTimestamp:
      return 2;
    case ParquetType::kDouble:
      return 5;
    case ParquetType::kText:
      return 6;
  }
  return 2;
}

ThriftStruct SchemaElement(const ParquetField& field) {
  constexpr int32_t kUtf8 = 0, kTimestampMicros = 10;
  ThriftStruct element;
  element.I32(1, PhysicalType(field.type)).I32(3, field.nullable ? 1 : 0).Binary(4, field.name);
  if (field.type == ParquetType::kText) {
    element.I32(6, kUtf8).Struct(10, ThriftStruct().Struct(1, {}));
  } else if (field.type == ParquetType::kTimestamp) {
    const ThriftStruct unit = ThriftStruct().Struct(2, {});
    element.I32(6, kTimestampMicros)
        .Struct(10, ThriftStruct().Struct(8, ThriftStruct().Bool(1, true).Struct(2, unit)));
  }
  return element;
}

ThriftStruct Statistics(const ParquetValues& column) {
  ThriftStruct statistics;
  statistics.I64(3, static_cast<int64_t>(column.nulls()));
  if (const auto bounds = BoundsOf(column)) {
    statistics.Binary(5, bounds->largest).Binary(6, bounds->least);
  }
  return statistics;
}

// With the length of four bytes that levels have in pages of version 1.
void AppendLevels(std::span<const uint8_t> present, std::string* out) {
  const std::vector<uint64_t> levels(present.begin(), present.end());
  std::string runs;
  AppendRuns(levels, 1, &runs);
  for (size_t i = 0; i < 4; ++i) out->push_back(static_cast<char>(runs.size() >> 8 * i));
  *out += runs;
}

}  // namespace

struct ParquetFile::Compressor {
  Compressor() : context(ZSTD_createCCtx()) {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~Compressor() { ZSTD_freeCCtx(context); }
  ZSTD_CCtx* context;
  std::string out;
};

void ParquetFile::DeleteCompressor::operator()(Compressor* compressor) const { delete compressor; }

Result<ParquetFile> ParquetFile::Create(const std::string& path, ParquetSchema schema) {
  const std::string part = path + ".part";
  FileDescriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return SystemFailure(fmt::format("{}: could not create", part), errno);
  ParquetFile parquet(path, std::move(schema), std::move(file));
  parquet.WriteOut(kMagic);
  return parquet;
}

ParquetFile::ParquetFile(std::string path, ParquetSchema schema, FileDescriptor file)
    : path_(std::move(path)),
      schema_(std::move(schema)),
      file_(std::move(file)),
      compressor_(new Compressor) {}

ParquetFile::ParquetFile(ParquetFile&&) noexcept = default;

ParquetFile::~ParquetFile() {
  if (file_.valid()) ::unlink((path_ + ".part").c_str());
}

void ParquetFile::WriteOut(std::string_view rest) {
  at_ += rest.size();
  while (!rest.empty() && error_ == 0) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) error_ = written == 0 ? EIO : errno;
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
}

uint64_t ParquetFile::WritePage(ThriftStruct header, int field, const ThriftStruct& of_kind,
                                const std::string& content) {
  std::string& out = compressor_->out;
  out.resize(ZSTD_compressBound(content.size()));
  const size_t size = ZSTD_compressCCtx(compressor_->context, out.data(), out.size(),
                                        content.data(), content.size(), kLevel);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();
  if (std::max(content.size(), size) > std::numeric_limits<int32_t>::max()) {
    failed_ = fmt::format("{}: the texts of a column are more than the 2 GiB of a page", path_);
    return 0;
  }
  header.I32(2, static_cast<int32_t>(content.size())).I32(3, static_cast<int32_t>(size));
  const std::string bytes = header.Struct(field, of_kind).Bytes();
  WriteOut(bytes);
  WriteOut(std::string_view(out).substr(0, size));
  return bytes.size() + content.size();
}

uint64_t ParquetFile::WriteDataPages(const ParquetValues& column,
                                     const ParquetDictionary* dictionary) {
  const ParquetType type = column.field().type;
  const ParquetEncoding encoding =
      dictionary != nullptr ? ParquetEncoding::kDictionary : EncodingOf(type);
  const std::span<const uint64_t> values =
      dictionary != nullptr ? dictionary->indices : column.values();
  uint64_t raw = 0;
  size_t value = 0;
  for (size_t row = 0; row < column.rows(); row += kPageRows) {
    const auto present = column.present().subspan(row, std::min(kPageRows, column.rows() - row));
    const auto count = static_cast<size_t>(std::ranges::count(present, 1));
    page_.clear();
    if (column.field().nullable) AppendLevels(present, &page_);
    if (dictionary != nullptr) {
      page_.push_back(static_cast<char>(dictionary->bits));
      AppendRuns(values.subspan(value, count), dictionary->bits, &page_);
    } else {
      AppendEncoded(type, values.subspan(value, count), &page_);
    }
    value += count;
    const int32_t levels = Code(ParquetEncoding::kRle);
    raw += WritePage(ThriftStruct().I32(1, kDataPage), 5,
                     ThriftStruct()
                         .I32(1, static_cast<int32_t>(present.size()))
                         .I32(2, Code(encoding))
                         .I32(3, levels)
                         .I32(4, levels),
                     page_);
  }
  return raw;
}

void ParquetFile::Write(const ParquetValues& column) {
  const uint64_t begin = at_;
  if (chunks_.empty()) group_begin_ = begin;
  const std::optional<ParquetDictionary> dictionary = DictionaryOf(column);
  uint64_t raw = 0;
  std::vector<int32_t> encodings = {Code(ParquetEncoding::kRle)};
  if (dictionary) {
    encodings = {Code(ParquetEncoding::kPlain), Code(ParquetEncoding::kRle),
                 Code(ParquetEncoding::kDictionary)};
    raw += WritePage(ThriftStruct().I32(1, kDictionaryPage), 7,
                     ThriftStruct()
                         .I32(1, static_cast<int32_t>(dictionary->count))
                         .I32(2, Code(ParquetEncoding::kPlain)),
                     dictionary->page);
  } else {
    encodings.push_back(Code(EncodingOf(column.field().type)));
  }
  const uint64_t first_data_page = at_;
  raw += WriteDataPages(column, dictionary ? &*dictionary : nullptr);
  ThriftStruct about;
  about.I32(1, PhysicalType(column.field().type))
      .I32s(2, encodings)
      .Texts(3, {column.field().name})
      .I32(4, kZstd)
      .I64(5, static_cast<int64_t>(column.rows()))
      .I64(6, static_cast<int64_t>(raw))
      .I64(7, static_cast<int64_t>(at_ - begin))
      .I64(9, static_cast<int64_t>(first_data_page));
  if (dictionary) about.I64(11, static_cast<int64_t>(begin));
  about.Struct(12, Statistics(column));
  chunks_.push_back(ThriftStruct().I64(2, static_cast<int64_t>(begin)).Struct(3, about));
  group_raw_ += raw;
  if (chunks_.size() == schema_.fields.size()) EndRowGroup(column.rows());
}

void ParquetFile::EndRowGroup(uint64_t rows) {
  std::vector<ThriftStruct> sorted;
  for (const size_t field : schema_.sorted_by) {
    sorted.push_back(
        ThriftStruct().I32(1, static_cast<int32_t>(field)).Bool(2, false).Bool(3, false));
  }
  ThriftStruct group;
  group.Structs(1, chunks_)
      .I64(2, static_cast<int64_t>(group_raw_))
      .I64(3, static_cast<int64_t>(rows));
  if (!sorted.empty()) group.Structs(4, sorted);
  group.I64(5, static_cast<int64_t>(group_begin_))
      .I64(6, static_cast<int64_t>(at_ - group_begin_))
      .I16(7, static_cast<int16_t>(row_groups_.size()));
  row_groups_.push_back(group);
  rows_ += rows;
  chunks_.clear();
  group_raw_ = 0;
}

std::string ParquetFile::Footer() const {
  std::vector<ThriftStruct> elements = {
      ThriftStruct().Binary(4, "schema").I32(5, static_cast<int32_t>(schema_.fields.size()))};
  for (const ParquetField& field : schema_.fields) elements.push_back(SchemaElement(field));
  std::vector<ThriftStruct> notes;
  for (const auto& [key, value] : schema_.notes) {
    notes.push_back(ThriftStruct().Binary(1, key).Binary(2, value));
  }
  ThriftStruct footer;
  footer.I32(1, 2).Structs(2, elements).I64(3, static_cast<int64_t>(rows_)).Structs(4, row_groups_);
  if (!notes.empty()) footer.Structs(5, notes);
  // Readers ignore least and largest values without an order for each column.
  const std::vector<ThriftStruct> orders(schema_.fields.size(), ThriftStruct().Struct(1, {}));
  std::string bytes = footer.Binary(6, "ranktap version 1").Structs(7, orders).Bytes();
  const size_t size = bytes.size();
  for (size_t i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(size >> 8 * i));
  return bytes.append(kMagic);
}

std::optional<Failure> ParquetFile::Close() {
  WriteOut(Footer());
  const std::string part = path_ + ".part";
  if (::close(file_.Take()) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0 && failed_.empty() && std::rename(part.c_str(), path_.c_str()) != 0) {
    error_ = errno;
  }
  if (error_ == 0 && failed_.empty()) return std::nullopt;
  ::unlink(part.c_str());
  if (!failed_.empty()) return Failure{failed_};
  Failure failure = SystemFailure(fmt::format("{}: could not write", path_), error_);
  failure.message += "; free some space there, or name a folder elsewhere";
  return failure;
}

}  // namespace ranktap::collector
