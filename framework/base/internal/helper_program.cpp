#include <tessera/framework/base/internal/helper_program.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::string find_program(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> folders{fs::read_symlink("/proc/self/exe", error).parent_path()};
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void*>(&find_program), &library) != 0) {
    const fs::path lib = fs::absolute(library.dli_fname, error).parent_path();
    folders.push_back(lib.parent_path() / "bin");
    // For multiarch folders such as /usr/lib/x86_64-linux-gnu.
    folders.push_back(lib.parent_path().parent_path() / "bin");
  }
  for (const fs::path& folder : folders) {
    const std::string path = folder / name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::vector<char*> exec_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int spawn_helper(std::vector<std::string> command, const HelperDescriptors& descriptors,
                 pid_t& process) {
  const std::vector<char*> arguments = exec_pointers(command);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (descriptors.input < 0) {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&actions, descriptors.input, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, descriptors.output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (descriptors.file >= 0) posix_spawn_file_actions_adddup2(&actions, descriptors.file, 3);
  // Above all clients' connections, which would stay open while the helper runs.
  posix_spawn_file_actions_addclosefrom_np(&actions, descriptors.file < 0 ? 3 : 4);
  const int error =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

HelperProgram::HelperProgram(std::vector<std::string> command, const HelperDescriptors& descriptors,
                             const std::string& fix) {
  const int error = spawn_helper(command, descriptors, process_);
  if (error == 0) return;
  process_ = -1;
  throw StateError(command[0], "the program can be started", strerror(error), fix);
}

HelperProgram::~HelperProgram() { end(); }

std::optional<int> HelperProgram::poll() {
  if (process_ < 0) return std::nullopt;  // waitpid(-1) would reap any child of this process
  int status = 0;
  const pid_t reaped = ::waitpid(process_, &status, WNOHANG);
  if (reaped == 0 || (reaped < 0 && errno == EINTR)) return std::nullopt;
  process_ = -1;
  return status;
}

void HelperProgram::end() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

}  // namespace tessera::detail
