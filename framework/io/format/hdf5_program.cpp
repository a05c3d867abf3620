#include <tessera/framework/io/format/hdf5_program.hpp>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr const char* program_name = "tessera-hdf5";
/// Exit code of a program whose libraries the dynamic linker does not find.
constexpr int exit_of_missing_library = 127;
/// Timeout of an answer.
constexpr int answer_timeout_ms = 120000;
constexpr uint64_t max_json_bytes = uint64_t{1} << 30;

std::string hdf5_program() {
  const std::string path = find_program(program_name);
  if (!path.empty()) return path;
  throw StateError("HDF5", str("the program ", program_name, " is installed beside this one"),
                   "none", "install it, or build with libhdf5-dev and libseccomp-dev installed");
}

[[noreturn]] void fail_to_start() {
  throw StateError("HDF5", str("the program ", program_name, " can be started"),
                   str("exit code ", exit_of_missing_library, ", a library is missing"),
                   str("install libseccomp2; \"ldd ", hdf5_program(), "\" names what is missing"));
}

}  // namespace

Hdf5Program::Hdf5Program(Work work, const FileDescriptor& file, const Hdf5Part& part,
                         std::string path)
    : path_(std::move(path)), work_(work) {
  // A socket, so that writing to an ended program is an error and not a signal.
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw StateError(program_name, "a socket to the program can be opened", strerror(errno),
                     "allow more open files");
  }
  connection_ = FileDescriptor(ends[0]);
  const FileDescriptor theirs(ends[1]);
  process_.emplace(
      std::vector<std::string>{hdf5_program(), work == Work::read ? "read" : "write", "3",
                               std::to_string(part.base), std::to_string(part.size)},
      HelperDescriptors{.input = theirs.get(), .output = theirs.get(), .file = file.get()},
      "reinstall it");
}

void Hdf5Program::ask(const std::string& line) {
  if (!connection_.valid()) fail("a file that the HDF5 library has already refused");
  std::string rest = line + "\n";
  while (!rest.empty()) {
    const ssize_t count = ::send(connection_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // The program has ended; its last message says why.
    rest.erase(0, static_cast<size_t>(count));
  }
}

Json Hdf5Program::answer() {
  const Message message = receive(max_json_bytes);
  if (message.kind != 'J') fail("an answer of another kind");
  try {
    return Json::parse(message.bytes);
  } catch (const nlohmann::json::exception&) {
    fail("an answer that is not JSON");
  }
}

void Hdf5Program::take_data(uint64_t bytes,
                            const std::function<void(std::span<const std::byte>)>& take) {
  while (bytes > 0) {
    const Message message = receive(bytes);
    if (message.kind != 'D' || message.bytes.empty()) fail("an answer of another kind");
    bytes -= message.bytes.size();
    take(std::as_bytes(std::span(message.bytes)));
  }
}

Hdf5Program::Message Hdf5Program::receive(uint64_t max_bytes) {
  std::array<char, 9> head;
  read_exactly(head);
  uint64_t size = 0;
  for (size_t i = 8; i > 0; --i) size = size << 8 | static_cast<uint8_t>(head[i]);
  if (head[0] == 'E') max_bytes = max_json_bytes;
  if (size > max_bytes) fail(str("an answer of ", size, " bytes"));
  Message message{head[0], std::string(size, '\0')};
  read_exactly(message.bytes);
  if (message.kind == 'E') fail(one_line(message.bytes, 300));
  return message;
}

void Hdf5Program::read_exactly(std::span<char> out) {
  while (!out.empty()) {
    pollfd waiting{connection_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, answer_timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) fail("no answer from the HDF5 library within two minutes");
    const ssize_t count = ::read(connection_.get(), out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out = out.subspan(static_cast<size_t>(count));
  }
  if (out.empty()) return;
  // The program has closed its end and is about to exit.
  std::optional<int> status;
  for (int i = 0; i < 100 && !(status = process_->poll()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == exit_of_missing_library) {
    fail_to_start();
  }
  fail(status && WIFSIGNALED(*status)
           ? str("a file that kills the HDF5 process with signal ", WTERMSIG(*status), " (",
                 ::strsignal(WTERMSIG(*status)), ")")
           : "a file that ends the HDF5 process");
}

void Hdf5Program::fail(const std::string& received) {
  process_->end();
  connection_.reset();
  if (work_ == Work::write) {
    throw FileError(path_, "the file must be writable", received,
                    "free disk space, or pass another path");
  }
  throw FileError(path_, "an HDF5 file as Keras writes it", received,
                  "save the model again with Keras or Tessera");
}

}  // namespace tessera::detail
