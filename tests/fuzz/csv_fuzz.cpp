#include <tessera/datasets/files/csv.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

/// The first byte is the block size, which must not change the rows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static fuzz::MemoryFile file;
  const std::string path = file.set({data + 1, size - 1});
  const auto read = [&](uint64_t block_bytes, int64_t threads) {
    std::string seen;
    try {
      CsvFile csv = read_csv_file(path, {.block_bytes = block_bytes, .threads = threads});
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
