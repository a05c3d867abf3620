#include "tests/support/processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <tessera/framework/cluster/launcher.hpp>

#include "tests/support/program.hpp"

namespace tessera::test {

using std::chrono::milliseconds;

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    // The name of the program, in brackets, may hold anything.
    std::istringstream rest(text.substr(text.rfind(')') + 1));
    std::string state;
    pid_t of = 0;
    if (rest >> state >> of && of == parent && state != "Z") {
      children.push_back(std::stoi(entry.path().filename()));
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

Processes::Processes(int count, const std::filesystem::path& program,
                     const std::vector<std::string>& arguments, const Variables& environment)
    : port_(free_port()),
      start_(std::chrono::steady_clock::now()),
      ends_(static_cast<size_t>(count)) {
  for (int rank = 0; rank < count; ++rank) {
    Variables variables = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", std::to_string(count)},
                           {"LOCAL_RANK", std::to_string(rank)},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(port_)},
                           {"OMP_NUM_THREADS", "1"},
                           {"TESSERA_REPORT_DIR", folder_.path().string()}};
    for (const auto& [name, value] : environment) {
      std::erase_if(variables, [&](const auto& one) { return one.first == name; });
      variables.emplace_back(name, value);
    }
    pids_.push_back(
        start_program(program, arguments, variables, file(rank, "out"), file(rank, "err")));
  }
}

Processes::~Processes() {
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void Processes::signal(int rank, int number) const {
  const pid_t pid = pids_.at(static_cast<size_t>(rank));
  if (pid != 0) ::kill(pid, number);
}

bool Processes::writes(int rank, const std::string& text, milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    for (const char* name : {"out", "err"}) {
      if (read_file(file(rank, name)).find(text) != std::string::npos) return true;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

bool Processes::reap() {
  bool all = true;
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    int status = 0;
    if (pids_[rank] == 0) continue;
    if (::waitpid(pids_[rank], &status, WNOHANG) != pids_[rank]) {
      all = false;
      continue;
    }
    pids_[rank] = 0;
    ends_[rank].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ends_[rank].at = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() -
                                                              start_);
  }
  return all;
}

const std::vector<RankEnd>& Processes::wait(milliseconds patience, const std::vector<int>& ranks) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto ended = [&] {
    if (reap()) return true;
    return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(),
                                         [&](int rank) { return pids_[size_t(rank)] == 0; });
  };
  while (!ended()) {
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
      continue;
    }
    for (size_t rank = 0; rank < pids_.size(); ++rank) {
      const bool wanted = ranks.empty() || std::count(ranks.begin(), ranks.end(), int(rank));
      if (pids_[rank] == 0 || !wanted) continue;
      ::kill(pids_[rank], SIGKILL);
      ::waitpid(pids_[rank], nullptr, 0);
      pids_[rank] = 0;
      ends_[rank].exit_code = -1;
    }
  }
  for (size_t rank = 0; rank < ends_.size(); ++rank) {
    ends_[rank].out = read_file(file(static_cast<int>(rank), "out"));
    ends_[rank].err = read_file(file(static_cast<int>(rank), "err"));
  }
  return ends_;
}

std::filesystem::path Processes::file(int rank, const char* name) const {
  return folder_ / (std::to_string(rank) + "." + name);
}

}  // namespace tessera::test
