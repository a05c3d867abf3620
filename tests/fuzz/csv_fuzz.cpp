#include <tessera/datasets/files/csv.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the options that the bits of a byte stand for.
CsvReadOptions options_of(uint8_t bits) {
  constexpr const char* encodings[] = {"utf-8", "latin-1", "cp1252", "utf-16"};
  CsvReadOptions options{.dialect = {.delimiter = bits & 1 ? ' ' : ',',
                                     .skip_initial_space = (bits & 4) != 0,
                                     .short_rows = (bits & 8) != 0},
                         .encoding = encodings[bits >> 5 & 3],
                         .skip_rows = bits >> 7};
  if (bits & 2) options.dialect.comment = '#';
  if (bits & 16) options.values = {.decimal = ',', .thousands = '.'};
  return options;
}

}  // namespace

/// The first byte is the block size, which must not change the rows; the second is the options.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static fuzz::MemoryFile file;
  const std::string path = file.set({data + 2, size - 2});
  CsvReadOptions options = options_of(data[1]);
  const auto read = [&](uint64_t block_bytes, int64_t threads) {
    std::string seen;
    try {
      options.block_bytes = block_bytes;
      options.threads = threads;
      CsvFile csv = read_csv_file(path, options);
      const auto rows = static_cast<size_t>(csv.rows);
      seen = std::to_string(rows);
      for (CsvColumn& column : csv.columns) {
        seen += column.name + csv_kind_name(column.kind);
        if (column.kind == CsvKind::text) {
          const std::vector<std::string> texts = column.take_texts();
          fuzz::require(texts.size() == rows);
          for (const std::string& text : texts) seen += text;
        } else {
          std::vector<double> doubles(rows);
          std::vector<int64_t> expected(rows);
          column.kind == CsvKind::float64 ? column.take(doubles.data())
                                          : column.take(expected.data());
        }
      }
    } catch (const FileError&) {
      seen = "refused";
    }
    return seen;
  };
  const std::string expected = read(1 << 15, 1);
  fuzz::require(read(16 + 4 * uint64_t{data[0]}, 1) == expected && read(1 << 15, 3) == expected);
  return 0;
}
