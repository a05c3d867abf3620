#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>

namespace tessera {

/// What datasets::read_parquet() reads of a file.
struct ParquetOptions {
  /// The columns to keep, in any order; empty: all.
  std::vector<std::string> columns = {};
  /// How many of the first rows; absent: all.
  std::optional<int64_t> rows = std::nullopt;
};

namespace datasets {

/// Reads a Parquet file by Arrow, on all cores: in a library apart, `tessera::arrow`, which is
/// there where Arrow was when Tessera was built. Columns keep the file's order and dtypes, but
/// unsigned integers of 16 bits are int32, those of 32 and 64 bits int64, decimals float64.
/// Timestamps, dates, times and durations are int64: their number of the file's unit, for a
/// timestamp and a date since 1970. Texts may be encoded by a dictionary, as pandas' categories
/// are. A column of integers or truth values with missing ones is float64, those being NaN, and
/// so is one without a value; missing texts are empty.
///
///     Table table = datasets::read_parquet("trips.parquet", {.columns = {"fare", "zone"}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, and the column if it is one's fault, for what is no Parquet
/// file, cut off or damaged, and for columns of lists, structs, maps and the like unless the
/// options leave them out; ConfigError for a wrong option or a column that is not there.
Table read_parquet(const std::string& path, const ParquetOptions& options = {});

}  // namespace datasets
}  // namespace tessera
