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
/// How long it may say nothing.
constexpr int patience_ms = 120000;
constexpr uint64_t most_json_bytes = uint64_t{1} << 30;

std::string hdf5_program() {
  const std::string path = find_program(program_name);
  if (!path.empty()) return path;
  throw StateError("HDF5", str("the program ", program_name, " lies beside this one"), "none",
                   "install it, or build where libhdf5-dev and libseccomp-dev are");
}

}  // namespace

Hdf5Program::Hdf5Program(Work work, const FileDescriptor& file, const Hdf5Part& part,
                         std::string path)
    : path_(std::move(path)), work_(work) {
  // A socket, so that writing to a program that has ended is an error and no signal.
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw StateError(program_name, "there is a connection to the program", strerror(errno),
                     "allow more open files");
  }
  connection_ = FileDescriptor(ends[0]);
  const FileDescriptor theirs(ends[1]);
  process_.emplace(
      std::vector<std::string>{hdf5_program(), work == Work::read ? "read" : "write", "3",
                               std::to_string(part.base), std::to_string(part.size)},
      HelperDescriptors{.input = theirs.get(), .output = theirs.get(), .file = file.get()},
      "install it anew");
}

void Hdf5Program::ask(const std::string& line) {
  if (!connection_.valid()) fail("one that the HDF5 library has refused before");
  std::string rest = line + "\n";
  while (!rest.empty()) {
    const ssize_t count = ::send(connection_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // It has ended, of which it has said why.
    rest.erase(0, static_cast<size_t>(count));
  }
}

Json Hdf5Program::answer() {
  const Message message = receive(most_json_bytes);
  if (message.kind != 'J') fail("an answer of another kind");
  try {
    return Json::parse(message.bytes);
  } catch (const nlohmann::json::exception&) {
    fail("an answer that is no JSON");
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

Hdf5Program::Message Hdf5Program::receive(uint64_t most_bytes) {
  std::array<char, 9> head;
  read_exactly(head);
  uint64_t size = 0;
  for (size_t i = 8; i > 0; --i) size = size << 8 | static_cast<uint8_t>(head[i]);
  if (head[0] == 'E') most_bytes = most_json_bytes;
  if (size > most_bytes) fail(str("an answer of ", size, " bytes"));
  Message message{head[0], std::string(size, '\0')};
  read_exactly(message.bytes);
  if (message.kind == 'E') fail(one_line(message.bytes, 300));
  return message;
}

void Hdf5Program::read_exactly(std::span<char> out) {
  while (!out.empty()) {
    pollfd waiting{connection_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) fail("no answer of the HDF5 library within two minutes");
    const ssize_t count = ::read(connection_.get(), out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out = out.subspan(static_cast<size_t>(count));
  }
  if (out.empty()) return;
  // It has closed its end, and so ends.
  std::optional<int> status;
  for (int i = 0; i < 100 && !(status = process_->poll()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fail(status && WIFSIGNALED(*status)
           ? str("one that ends the HDF5 library by signal ", WTERMSIG(*status), " (",
                 ::strsignal(WTERMSIG(*status)), ")")
           : "one that ends the HDF5 library");
}

void Hdf5Program::fail(const std::string& received) {
  process_->end();
  connection_.reset();
  if (work_ == Work::write) {
    throw FileError(path_, "a file that can be written", received,
                    "make room for it, or give another path");
  }
  throw FileError(path_, "an HDF5 file as Keras writes it", received,
                  "save the model anew with Keras or Tessera");
}

}  // namespace tessera::detail
