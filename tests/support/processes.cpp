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

#include <tessera/framework/cluster/launcher/launcher.hpp>

#include "tests/support/program.hpp"

namespace tessera::test {

using namespace detail;

using std::chrono::milliseconds;

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    // The program's name, in parentheses, may contain anything.
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

ProcessGroup::ProcessGroup(int count)
    : start_(std::chrono::steady_clock::now()),
      pids_(static_cast<size_t>(count)),
      ends_(static_cast<size_t>(count)) {
  for (int number = 0; number < count; ++number) {
    for (const char* name : {"out", "err"}) write_file(file(number, name), "");
  }
}

ProcessGroup::~ProcessGroup() {
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void ProcessGroup::start(int number, const std::filesystem::path& program,
                         const std::vector<std::string>& arguments, const Variables& environment) {
  if (runs(number)) throw std::runtime_error("a process that is to start still runs");
  const Variables all = replaced(
      {{"OMP_NUM_THREADS", "1"}, {"TESSERA_REPORT_DIR", folder_.path().string()}}, environment);
  ends_[size_t(number)] = {};
  pids_[size_t(number)] =
      start_program(program, arguments, all, file(number, "out"), file(number, "err"));
}

void ProcessGroup::signal(int number, int signal) const {
  const pid_t pid = pids_.at(static_cast<size_t>(number));
  if (pid != 0) ::kill(pid, signal);
}

bool ProcessGroup::runs(int number) {
  reap();
  return pids_.at(static_cast<size_t>(number)) != 0;
}

std::string ProcessGroup::text(int number) const {
  return read_file(file(number, "out")) + read_file(file(number, "err"));
}

bool ProcessGroup::writes(int number, const std::string& text, milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (bool waits = true; waits;) {
    waits = runs(number) && std::chrono::steady_clock::now() < end;
    for (const char* name : {"out", "err"}) {
      if (read_file(file(number, name)).find(text) != std::string::npos) return true;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

bool ProcessGroup::reap() {
  bool all = true;
  for (size_t number = 0; number < pids_.size(); ++number) {
    int status = 0;
    if (pids_[number] == 0) continue;
    if (::waitpid(pids_[number], &status, WNOHANG) != pids_[number]) {
      all = false;
      continue;
    }
    pids_[number] = 0;
    ends_[number].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ends_[number].at =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
  }
  return all;
}

const std::vector<RankEnd>& ProcessGroup::wait(milliseconds patience,
                                               const std::vector<int>& numbers) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto ended = [&] {
    if (reap()) return true;
    return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(),
                                           [&](int number) { return pids_[size_t(number)] == 0; });
  };
  while (!ended()) {
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
      continue;
    }
    for (size_t number = 0; number < pids_.size(); ++number) {
      const bool selected =
          numbers.empty() || std::count(numbers.begin(), numbers.end(), int(number));
      if (pids_[number] == 0 || !selected) continue;
      ::kill(pids_[number], SIGKILL);
      ::waitpid(pids_[number], nullptr, 0);
      pids_[number] = 0;
      ends_[number].exit_code = -1;
    }
  }
  for (size_t number = 0; number < ends_.size(); ++number) {
    ends_[number].out = read_file(file(static_cast<int>(number), "out"));
    ends_[number].err = read_file(file(static_cast<int>(number), "err"));
  }
  return ends_;
}

std::filesystem::path ProcessGroup::file(int number, const char* name) const {
  return folder_ / (std::to_string(number) + "." + name);
}

ProcessGroup::Variables replaced(ProcessGroup::Variables variables,
                                 const ProcessGroup::Variables& later) {
  for (const auto& [name, value] : later) {
    std::erase_if(variables, [&name = name](const auto& one) { return one.first == name; });
    variables.emplace_back(name, value);
  }
  return variables;
}

Processes::Processes(int count, const std::filesystem::path& program,
                     const std::vector<std::string>& arguments, const Variables& environment)
    : ProcessGroup(count), port_(free_port()) {
  for (int rank = 0; rank < count; ++rank) {
    const Variables variables = {{"RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", std::to_string(count)},
                                 {"LOCAL_RANK", std::to_string(rank)},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port_)}};
    start(rank, program, arguments, replaced(variables, environment));
  }
}

}  // namespace tessera::test
