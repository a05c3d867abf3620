#include <tessera/framework/cluster/launch_round.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/names.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto longest_wait = std::chrono::milliseconds(100);
// Of one stream in a row, so that the others are heard.
constexpr int most_reads = 16;

/// Whether it ended because of another one, whatever the order in which they end.
bool blames_another(const ChildProcess& child) {
  return WIFEXITED(child.status()) && WEXITSTATUS(child.status()) == exit_of_lost_run;
}

}  // namespace

LaunchRound::LaunchRound(const std::vector<std::string>& command, const LaunchOptions& options,
                         const std::map<std::string, std::string>& environment, int signals,
                         LineOutput& output)
    : options_(options), signals_(signals), output_(output), start_(Clock::now()) {
  for (int rank = 0; rank < options.processes; ++rank) {
    auto variables = environment;
    variables["RANK"] = variables["LOCAL_RANK"] = std::to_string(rank);
    variables["LOCAL_WORLD_SIZE"] = std::to_string(options.processes);
    children_.emplace_back(rank, command, variables);
  }
}

bool LaunchRound::all_ended() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const ChildProcess& child) { return child.ended(); });
}

void LaunchRound::watch() {
  while (!all_ended()) {
    wait();
    take_signals();
    for (ChildProcess& child : children_) take_output(child, false);
    reap();
    press();
  }
}

void LaunchRound::wait() {
  std::vector<pollfd> list = {{signals_, POLLIN, 0}};
  if (!output_.full()) {
    for (ChildProcess& child : children_) {
      for (const ChildStream& stream : child.streams()) {
        if (stream.pipe.valid()) list.push_back({stream.pipe.get(), POLLIN, 0});
      }
    }
  }
  if (!output_.empty()) list.push_back({output_.descriptor(), POLLOUT, 0});
  poll(list.data(), list.size(), static_cast<int>(longest_wait.count()));
  if (!output_.empty() && list.back().revents != 0) output_.write();
}

void LaunchRound::take_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD) stop(number);
  }
}

void LaunchRound::stop(int signal) {
  if (stopped_by_ != 0) {
    output_.add(2, str("launch: ", signal_name(signal), " again: killing all"));
    return signal_all(SIGKILL);
  }
  stopped_by_ = signal;
  output_.add(2, str("launch: ", signal_name(signal),
                     ": waiting for the processes to leave; a second signal kills them"));
  signal_all(signal);
}

void LaunchRound::signal_all(int signal) {
  for (const ChildProcess& child : children_) child.signal(signal);
}

void LaunchRound::take_output(ChildProcess& child, bool ended) {
  std::array<char, 65536> bytes;
  for (ChildStream& stream : child.streams()) {
    const auto line = [&](const std::string& text) {
      output_.add(stream.target, child.rank(), text);
    };
    for (int reads = 0; stream.pipe.valid() && reads < most_reads; ++reads) {
      if (output_.full() && !ended) break;
      const ssize_t size = read(stream.pipe.get(), bytes.data(), bytes.size());
      if (size <= 0 && (ended || size == 0)) {
        stream.lines.finish(line);
        stream.pipe.reset();
      }
      if (size <= 0) break;
      stream.lines.add({bytes.data(), static_cast<size_t>(size)}, line);
    }
  }
}

void LaunchRound::reap() {
  std::vector<ChildProcess*> ended;
  for (ChildProcess& child : children_) {
    if (child.reap()) ended.push_back(&child);
  }
  // Of those that were found dead together, one that a signal killed did not die of the others.
  std::stable_partition(ended.begin(), ended.end(), [](const ChildProcess* child) {
    return WIFSIGNALED(child->status());
  });
  for (ChildProcess* child : ended) {
    take_output(*child, true);
    note_end(*child);
  }
}

void LaunchRound::note_end(const ChildProcess& child) {
  const bool blames = blames_another(child);
  const bool first = child.failed() && stopped_by_ == 0 &&
                     (first_ == nullptr || (blames_another(*first_) && !blames));
  if (first) first_ = &child;
  if (first && !blames && !all_ended()) {
    output_.add(2, str("launch: rank ", child.rank(), " failed: ", describe(child)));
  }
  if ((first || stopped_by_ != 0) && !next_press_) next_press_ = Clock::now() + options_.grace;
}

void LaunchRound::press() {
  if (!next_press_ || Clock::now() < *next_press_ || all_ended()) return;
  std::vector<int> ranks;
  for (const ChildProcess& child : children_) {
    if (!child.ended()) ranks.push_back(child.rank());
  }
  const int signal = presses_ == 0 ? SIGTERM : SIGKILL;
  output_.add(2, str("launch: ", rank_names(ranks), " did not leave: ", signal_name(signal)));
  signal_all(signal);
  // A process that stands still takes no signal but these.
  if (presses_++ == 0) signal_all(SIGCONT);
  next_press_ = Clock::now() + options_.kill_after;
}

std::string LaunchRound::describe(const ChildProcess& child) const {
  const std::chrono::duration<double> time = child.end() - start_;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", time.count());
  return str(describe_status(child.status()), ", after ", seconds, " s");
}

int LaunchRound::first_status() const { return first_ == nullptr ? 0 : first_->status(); }

std::string LaunchRound::summary() const {
  return str("rank ", first_->rank(), " failed first: ", describe(*first_));
}

}  // namespace tessera
