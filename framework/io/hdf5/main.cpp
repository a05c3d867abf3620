#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string>

#include <tessera/framework/io/hdf5/file_driver.hpp>
#include <tessera/framework/io/hdf5/handles.hpp>
#include <tessera/framework/io/hdf5/messages.hpp>
#include <tessera/framework/io/hdf5/reading.hpp>
#include <tessera/framework/io/hdf5/sandbox.hpp>
#include <tessera/framework/io/hdf5/writing.hpp>

namespace {

using namespace tessera::detail::hdf5;

constexpr const char* help =
    "Reads and writes HDF5 files for Tessera in a sandboxed process, so that a malicious file can\n"
    "crash nothing else. Not for use by hand.\n"
    "Usage: tessera-hdf5 read|write DESCRIPTOR BASE SIZE\n";

// CMake defines the macro for this program.
constexpr const char* version = "tessera-hdf5 (Tessera) " TESSERA_VERSION "\n";

void read_file(FilePart& part) {
  const Handle access{access_property_list(part), H5Pclose, "no access"};
  const Handle file{H5Fopen("/file", H5F_ACC_RDONLY, access), H5Fclose, "not an HDF5 file"};
  serve_file(file);
}

/// Lays out a tree of groups and datasets and answers {"size", "offsets"}.
void write_file(FilePart& part) {
  std::string line;
  if (!receive(line)) return;
  Json offsets;
  {
    const Handle access{access_property_list(part), H5Pclose, "no access"};
    const Handle file{H5Fcreate("/file", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose,
                      "the file cannot be created"};
    offsets = lay_out(file, Json::parse(line));
    checked(H5Fflush(file, H5F_SCOPE_GLOBAL), "the file cannot be written");
  }
  send('J', Json{{"size", part.size}, {"offsets", offsets}}.dump());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string verb = count > 1 ? arguments[1] : "";
  if (count != 5 || (verb != "read" && verb != "write")) {
    const bool version_requested = verb == "--version";
    const bool asked = version_requested || verb == "--help" || verb == "-h";
    const std::string text = version_requested ? version : help;
    const int to = asked ? STDOUT_FILENO : STDERR_FILENO;
    return ::write(to, text.data(), text.size()) > 0 && asked ? EXIT_SUCCESS : 2;
  }
  FilePart part{std::atoi(arguments[2]), std::strtoull(arguments[3], nullptr, 10),
                std::strtoull(arguments[4], nullptr, 10)};
  try {
    // Initialized before the sandbox, since the library reads files then.
    checked(H5open(), "no library");
    checked(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "no error handler");
    checked(H5PLset_loading_state(0), "loading of plugins cannot be disabled");
    const bool writes = verb == "write";
    if (const char* refused = enter_sandbox(writes, part.size)) {
      throw Refusal(std::string("no sandbox: the system refuses ") + refused);
    }
    writes ? write_file(part) : read_file(part);
  } catch (const std::bad_alloc&) {
    send('E', "a file that takes more memory than is allowed");
    ::_exit(EXIT_FAILURE);
  } catch (const std::exception& error) {
    send('E', error.what());
    ::_exit(EXIT_FAILURE);
  }
  ::_exit(EXIT_SUCCESS);
}
