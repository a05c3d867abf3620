#include <tessera/framework/drawing/graphviz.hpp>

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>

namespace tessera::detail {
namespace {

/// Starts dot with the file as standard input, so that no file name can be taken for an option.
/// Returns 0 or an error number.
int start_dot(const std::vector<std::string>& words, const std::string& input, int output,
              pid_t& process) {
  const FileDescriptor file = open_descriptor(input, O_RDONLY);
  if (!file.valid()) return errno;
  return spawn_helper(words, {.input = file.get(), .output = output}, process);
}

std::string read_to_end(const FileDescriptor& pipe) {
  std::string bytes;
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t size = ::read(pipe.get(), chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return bytes;
    bytes.append(chunk.data(), static_cast<size_t>(size));
  }
}

}  // namespace

std::string draw_dot_file(const std::string& path, const std::string& image_path) {
  const std::string format = image_path.substr(image_path.rfind('.') + 1);
  std::vector<std::string> words = {"dot", "-T" + format};
  if (format == "png") words.push_back("-Gdpi=144");
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return str("a pipe to dot: ", strerror(errno));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  pid_t process = -1;
  const int error = start_dot(words, path, write_end.get(), process);
  if (error == ENOENT) return "there is no dot in PATH";
  if (error != 0) return str("dot: ", strerror(error));
  write_end.reset();
  const std::string bytes = read_to_end(read_end);
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return str("waiting for dot: ", strerror(errno));
  }
  if (WIFSIGNALED(status)) return str("dot was killed by signal ", WTERMSIG(status));
  if (status != 0) return str("dot ended with exit code ", WEXITSTATUS(status));
  if (bytes.empty()) return "dot wrote nothing";
  write_file_atomically(image_path, bytes);
  return "";
}

}  // namespace tessera::detail
