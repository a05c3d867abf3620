#include "tests/support/packed_writer/packed_writer.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>

namespace tessera::test {

extern "C" void pack_texts(int filter, int format, const std::vector<std::string>& texts,
                           std::string& out) {
  out.assign(size_t{1} << 20, '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  bool good = archive_write_add_filter(writer, filter) == ARCHIVE_OK &&
              archive_write_set_format(writer, format) == ARCHIVE_OK &&
              archive_write_set_bytes_in_last_block(writer, 1) == ARCHIVE_OK &&
              archive_write_open_memory(writer, out.data(), out.size(), &used) == ARCHIVE_OK;
  for (size_t i = 0; good && i < texts.size(); ++i) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, (std::to_string(i) + ".csv").c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(texts[i].size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    good = archive_write_header(writer, entry) == ARCHIVE_OK &&
           archive_write_data(writer, texts[i].data(), texts[i].size()) >= 0;
    archive_entry_free(entry);
  }
  good = archive_write_free(writer) == ARCHIVE_OK && good;
  out.resize(good ? used : 0);
}

}  // namespace tessera::test
