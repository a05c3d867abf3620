#include "apps/bench/worker_group.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/launcher.hpp>

namespace tessera::bench {
namespace {

[[noreturn]] void become(std::vector<std::string> command, int rank, int count, int port) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  std::perror(words[0]);
  ::_exit(127);
}

}  // namespace

WorkerGroup::WorkerGroup(int count, const std::vector<std::string>& command) : command_(command) {
  std::signal(SIGPIPE, SIG_IGN);
  const int port = free_port();
  for (int rank = 0; rank < count; ++rank) workers_.push_back(start(rank, count, port));
}

WorkerGroup::~WorkerGroup() {
  for (const Worker& worker : workers_) std::fclose(worker.in);
  for (const Worker& worker : workers_) {
    if (worker.out) std::fclose(worker.out);
    ::waitpid(worker.pid, nullptr, 0);
  }
}

WorkerGroup::Worker WorkerGroup::start(int rank, int count, int port) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
    throw ConfigError("bench", "pipes to other processes", "none", "");
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    become(command_, rank, count, port);
  }
  ::close(in[0]);
  ::close(out[1]);
  FILE* answers = nullptr;
  if (rank == 0) {
    answers = ::fdopen(out[0], "r");
  } else {
    ::close(out[0]);
  }
  return {pid, ::fdopen(in[1], "w"), answers};
}

Json WorkerGroup::run(int64_t steps) {
  for (const Worker& worker : workers_) {
    std::fprintf(worker.in, "%lld\n", static_cast<long long>(steps));
    std::fflush(worker.in);
  }
  std::string line;
  for (int c = 0; (c = std::fgetc(workers_[0].out)) != EOF && c != '\n';) {
    line += static_cast<char>(c);
  }
  if (line.empty()) {
    throw ConfigError("bench", "the processes work until they are told to end",
                      command_[0] + " has ended", "look at what it says");
  }
  return parse_json(line, command_[0]);
}

}  // namespace tessera::bench
