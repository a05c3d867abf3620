#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>

namespace tessera {

/// The options of datasets::read_parquet().
struct ParquetOptions {
  /// Columns to keep, in any order (default: all).
  std::vector<std::string> columns = {};
  /// Number of rows to read, from the first on (default: all).
  std::optional<int64_t> rows = std::nullopt;
};

namespace datasets {

/// Reads a Parquet file with Arrow, on all cores. Part of the separate library `tessera::arrow`,
/// which exists if Arrow was found when Tessera was built. Columns keep the file's order and
/// dtypes, except that uint16 becomes int32, uint32 and uint64 become int64, and decimals float64.
/// Timestamps, dates, times and durations are int64 in the file's unit, timestamps and dates since
/// 1970. Texts may be dictionary-encoded, as pandas' categories are. An integer or bool column with
/// missing values is float64 with NaN for these, and so is a column without any value; missing
/// texts are empty.
///
///     Table table = datasets::read_parquet("trips.parquet", {.columns = {"fare", "zone"}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, and the column where it applies, if it is no Parquet file,
/// truncated or damaged, or has columns of lists, structs, maps and the like that `columns` does
/// not exclude; ConfigError for an invalid option or an unknown column.
Table read_parquet(const std::string& path, const ParquetOptions& options = {});

}  // namespace datasets
}  // namespace tessera
