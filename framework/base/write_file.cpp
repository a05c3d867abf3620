#include <tessera/framework/base/write_file.hpp>

#include <tessera/framework/base/internal/file.hpp>

namespace tessera {

void write_file(const std::string& path, std::string_view text) {
  detail::write_file_atomically(path, text);
}

}  // namespace tessera
