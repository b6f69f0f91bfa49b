// A folder of Parquet files that SQL engines read as tables:
//
//   FOLDER/TABLE/run=NAME/rank=R/part-0.parquet
//
// Engines show what is in the folders' names as columns `run` and `rank`. Several runs share a
// folder. What is written of one lies under FOLDER/.part-... until all of it is there; then each
// table gets its folder by one rename.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/parquet/parquet_file.h"

namespace ranktap::collector {

// Whether engines read NAME back from "run=NAME" as it is: letters, digits, '.', '_' and '-'.
bool IsRunName(std::string_view name);
// The last part of the path, made one.
std::string RunNameOf(const std::string& path);

// One thread. The destructor removes what is not published.
class DataSet {
 public:
  // Creates the folder where it is missing. Fails where one of `tables` holds a run of that name
  // already, unless it is to be replaced.
  static Result<DataSet> Open(const std::string& folder, const std::string& run, bool replace,
                              std::span<const std::string_view> tables);
  DataSet(DataSet&& other) noexcept;
  DataSet& operator=(DataSet&&) = delete;
  ~DataSet();

  // A new file of the table: of this rank, of a process without one (nullopt: engines read NULL),
  // or of the whole run.
  Result<ParquetFile> CreateOfRank(std::string_view table, std::optional<uint32_t> rank,
                                   ParquetSchema schema);
  Result<ParquetFile> CreateOfRun(std::string_view table, ParquetSchema schema);

  // Gives the tables their folders, in the order in which they were opened. Nothing when all went
  // well.
  std::optional<Failure> Publish();

 private:
  DataSet(std::string folder, std::string run, bool replace, std::string staging)
      : folder_(std::move(folder)),
        run_(std::move(run)),
        replace_(replace),
        staging_(std::move(staging)) {}
  std::string FolderOf(const std::string& table) const;
  Result<ParquetFile> CreateIn(std::string_view table, const std::string& partition,
                               ParquetSchema schema);
  std::optional<Failure> PublishTable(const std::string& table);

  std::string folder_, run_;
  bool replace_;
  std::string staging_;               // empty: moved from, or published
  std::vector<std::string> tables_;   // with files
  std::map<std::string, int> parts_;  // by folder: how many files
};

}  // namespace ranktap::collector
