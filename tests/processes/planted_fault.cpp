#include "tests/processes/planted_fault.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace tessera::test {
namespace {

void kill_after(std::chrono::microseconds delay) {
  std::thread([delay] {
    std::this_thread::sleep_for(delay);
    ::raise(SIGKILL);
  }).detach();
}

}  // namespace

Arguments::Arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::string Arguments::text(const std::string& name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

int64_t Arguments::number(const std::string& name, int64_t otherwise) const {
  return values_.count(name) ? std::stoll(values_.at(name)) : otherwise;
}

void Fault::at(const std::string& now, int64_t number) const {
  if (!here || now != phase || number < step) return;
  const bool later = kind == "kill" && delay > 0;
  if (number > step && !later) return;
  if (number == step && later) {
    kill_after(std::chrono::microseconds(delay));
    return;
  }
  if (kind == "kill") ::raise(SIGKILL);
  if (kind == "stop") ::raise(SIGSTOP);
  if (kind == "throw") throw std::runtime_error("the planted error");
  if (kind == "exit") ::_exit(3);
  if (kind == "hang") ::pause();
}

}  // namespace tessera::test
