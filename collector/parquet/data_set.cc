#include "collector/parquet/data_set.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// As Hive writes a partition's NULL.
constexpr std::string_view kNoRank = "__HIVE_DEFAULT_PARTITION__";

bool IsPlain(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

Failure FolderFailure(const std::string& path, const std::error_code& error) {
  return {fmt::format("{}: could not create the folder: {}; name a folder that can be written to",
                      path, error.message())};
}

}  // namespace

bool IsRunName(std::string_view name) {
  return !name.empty() && name.size() <= 200 && std::ranges::all_of(name, IsPlain);
}

std::string RunNameOf(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string name = whole.filename().string().substr(0, 200);
  std::ranges::replace_if(
      name, [](char byte) { return !IsPlain(byte); }, '-');
  return name.empty() ? "run" : name;
}

Result<DataSet> DataSet::Open(const std::string& folder, const std::string& run, bool replace,
                              std::span<const std::string_view> tables) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FolderFailure(folder, error);
  for (const std::string_view table : tables) {
    const std::string taken = fmt::format("{}/{}/run={}", folder, table, run);
    if (replace || !fs::exists(taken, error)) continue;
    return Failure{
        fmt::format("{}: the data set holds a run {} already; --replace writes it anew, --run-name "
                    "NAME adds this one under another name",
                    taken, run)};
  }
  DataSet set(folder, run, replace, fmt::format("{}/.part-{}-{}", folder, run, ::getpid()));
  // A killed process of the same number left it.
  fs::remove_all(set.staging_, error);
  fs::create_directories(set.staging_, error);
  if (error) return FolderFailure(set.staging_, error);
  return set;
}

DataSet::DataSet(DataSet&& other) noexcept
    : folder_(std::move(other.folder_)),
      run_(std::move(other.run_)),
      replace_(other.replace_),
      staging_(std::exchange(other.staging_, "")),
      tables_(std::move(other.tables_)),
      parts_(std::move(other.parts_)) {}

DataSet::~DataSet() {
  std::error_code error;
  if (!staging_.empty()) fs::remove_all(staging_, error);
}

std::string DataSet::FolderOf(const std::string& table) const {
  return fmt::format("{}/{}/run={}", folder_, table, run_);
}

Result<ParquetFile> DataSet::CreateOfRank(std::string_view table, std::optional<uint32_t> rank,
                                          ParquetSchema schema) {
  return CreateIn(table, fmt::format("/rank={}", rank ? std::to_string(*rank) : kNoRank),
                  std::move(schema));
}

Result<ParquetFile> DataSet::CreateOfRun(std::string_view table, ParquetSchema schema) {
  return CreateIn(table, "", std::move(schema));
}

Result<ParquetFile> DataSet::CreateIn(std::string_view table, const std::string& partition,
                                      ParquetSchema schema) {
  if (std::ranges::find(tables_, table) == tables_.end()) tables_.emplace_back(table);
  const std::string folder = fmt::format("{}/{}{}", staging_, table, partition);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FolderFailure(folder, error);
  return ParquetFile::Create(fmt::format("{}/part-{}.parquet", folder, parts_[folder]++),
                             std::move(schema));
}

std::optional<Failure> DataSet::PublishTable(const std::string& table) {
  const std::string target = FolderOf(table);
  std::error_code error;
  fs::create_directories(fs::path(target).parent_path(), error);
  if (error) return FolderFailure(target, error);
  if (replace_ && fs::exists(target, error)) {
    fs::rename(target, fmt::format("{}/{}.replaced", staging_, table), error);
  }
  if (!error) fs::rename(fmt::format("{}/{}", staging_, table), target, error);
  if (!error) return std::nullopt;
  return Failure{
      fmt::format("{}: could not give the finished table its name: {}; run it again with "
                  "--replace, some tables "
                  "of the run may be there",
                  target, error.message())};
}

std::optional<Failure> DataSet::Publish() {
  for (const std::string& table : tables_) {
    if (auto failure = PublishTable(table)) return failure;
  }
  std::error_code error;
  fs::remove_all(std::exchange(staging_, ""), error);
  return std::nullopt;
}

}  // namespace ranktap::collector
