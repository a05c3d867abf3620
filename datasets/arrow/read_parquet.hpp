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

/// Reads a Parquet file with Arrow, on all cores, or all .parquet files below a folder, in the
/// order of their paths, with columns of the values in folders' names (`year=2024/part-0.parquet`:
/// int64 or text). Part of the separate library `tessera::arrow`, which exists if Arrow was found
/// when Tessera was built. Columns keep the file's order and dtypes, except that uint16 becomes
/// int32, uint32 and uint64 become int64, and decimals float64. A column of lists of a fixed size,
/// such as embeddings, is a tensor (rows, size). Timestamps, dates, times and durations are int64
/// in the file's unit, timestamps and dates since 1970. Texts and bytes may be dictionary-encoded,
/// as pandas' categories are, or in structs of bytes and path, as Hugging Face's pictures are: the
/// column holds the bytes. An integer or bool column with missing values is float64 with NaN for
/// these, and so is a column without any value; missing texts are empty.
///
///     Table table = datasets::read_parquet("trips.parquet", {.columns = {"fare", "zone"}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, and the column where it applies, if it is no Parquet file,
/// truncated or damaged, has columns of lists, structs, maps and the like that `columns` does not
/// exclude, or if the files of a folder have other columns; ConfigError for an invalid option or an
/// unknown column.
Table read_parquet(const std::string& path, const ParquetOptions& options = {});

}  // namespace datasets
}  // namespace tessera
