#include <tessera/framework/cluster/launcher.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <tessera/framework/base/descriptor.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/text.hpp>
#include <tessera/framework/cluster/launch_round.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

constexpr int longest_flush_ms = 1000;

/// While it lives, the signals that a launcher handles wait to be read, and writing to nobody is an
/// error instead of a signal.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, number);
    // Ignored, it would take the status of children away.
    child_before_ = ::signal(SIGCHLD, SIG_DFL);
    pipe_before_ = ::signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, &before_);
    read_ = Descriptor(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~HeldSignals() {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::signal(SIGCHLD, child_before_);
    ::signal(SIGPIPE, pipe_before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  int descriptor() const { return read_.get(); }

 private:
  sigset_t before_;
  sighandler_t child_before_, pipe_before_;
  Descriptor read_;
};

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_program(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string random_name() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) < 0) number = static_cast<uint64_t>(getpid());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

int core_count() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equal = text.find('=');
    if (equal != text.npos) variables.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return variables;
}

/// What all processes of the n-th start share.
Variables variables_of(const LaunchOptions& options, int restart) {
  Variables variables = own_variables();
  // They would come before RANK, and speak of another run.
  for (const char* name : {"TF_CONFIG", "DTENSOR_JOBS", "DTENSOR_CLIENT_ID",
                           "DTENSOR_NUM_CLIENTS", "TESSERA_RESTART"}) {
    variables.erase(name);
  }
  variables["WORLD_SIZE"] = std::to_string(options.processes);
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(free_port());
  variables["TESSERA_JOB"] = random_name();
  if (restart > 0) variables["TESSERA_RESTART"] = std::to_string(restart);
  variables.emplace("OMP_NUM_THREADS",
                    std::to_string(std::max(1, core_count() / options.processes)));
  return variables;
}

/// Writes what is left, unless a signal says that nobody waits for it, or said so before and
/// nobody reads.
void flush(LineOutput& output, int signals, bool stopped) {
  while (!output.empty()) {
    pollfd list[] = {{signals, POLLIN, 0}, {output.descriptor(), POLLOUT, 0}};
    if (poll(list, 2, stopped ? longest_flush_ms : -1) == 0) return;
    if (list[1].revents != 0) output.write();
    signalfd_siginfo info;
    if (list[1].revents == 0 && read(signals, &info, sizeof info) == sizeof info &&
        info.ssi_signo != SIGCHLD) {
      return;
    }
  }
}

struct Outcome {
  int code = 0;
  bool stopped = false;
};

Outcome run_rounds(const std::vector<std::string>& command, const LaunchOptions& options,
                   int signals, LineOutput& output) {
  for (int restart = 0;; ++restart) {
    LaunchRound round(command, options, variables_of(options, restart), signals, output);
    round.watch();
    if (round.stopped_by() != 0) return {128 + round.stopped_by(), true};
    if (round.first_status() == 0) return {};
    output.add(STDERR_FILENO, "launch: " + round.summary());
    if (restart == options.max_restarts) return {exit_code_of(round.first_status())};
    output.add(STDERR_FILENO, str("launch: restart ", restart + 1, " of ", options.max_restarts));
  }
}

}  // namespace

int free_port() {
  const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe.get(), any, size) != 0 || getsockname(probe.get(), any, &size) != 0) {
    throw ConfigError("launch", "127.0.0.1 has a free port", "none", "close other programs");
  }
  return ntohs(address.sin_port);
}

std::string find_program(const std::string& name, const std::string& folder) {
  if (name.find('/') != name.npos) {
    if (is_program(name)) return name;
    throw ConfigError("launch", "the program is a file that can be run", in_quotes(name),
                      "check the path");
  }
  const std::string beside = (fs::path(folder) / name).string();
  if (!name.empty() && is_program(beside)) return beside;
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "" : variable;
  for (size_t from = 0; !name.empty() && from <= path.size();) {
    const size_t colon = std::min(path.find(':', from), path.size());
    const fs::path found = fs::path(path.substr(from, colon - from)) / name;
    if (colon > from && is_program(found)) return found.string();
    from = colon + 1;
  }
  throw ConfigError("launch", "the program is a path, an application or a program in PATH",
                    in_quotes(name), suggestion(name, programs_in(folder)));
}

int launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  const HeldSignals signals;
  LineOutput output;
  const Outcome outcome = run_rounds(command, options, signals.descriptor(), output);
  flush(output, signals.descriptor(), outcome.stopped);
  return outcome.code;
}

}  // namespace tessera
