#include <tessera/framework/cluster/launcher/launch_attempt.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto max_poll_time = std::chrono::milliseconds(100);
// How long to wait before restarting a process that blames another one, which may be about to end.
constexpr auto wait_for_blamed = std::chrono::seconds(2);
// Maximum number of consecutive reads of one stream, so that the others are served.
constexpr int max_reads = 16;

/// Whether the process ended because of another one, in whatever order they were found.
bool blames_another(const ChildProcess& child) {
  return WIFEXITED(child.status()) && WEXITSTATUS(child.status()) == exit_of_lost_run;
}

}  // namespace

LaunchAttempt::LaunchAttempt(const std::vector<std::string>& command, const LaunchOptions& options,
                             const std::vector<LaunchTask>& tasks, int signals,
                             OutputMultiplexer& output)
    : command_(command),
      options_(options),
      signals_(signals),
      output_(output),
      start_(Clock::now()) {
  members_.reserve(tasks.size());
  for (const LaunchTask& task : tasks) {
    members_.push_back({task, static_cast<int>(members_.size())});
    start(members_.back());
  }
}

void LaunchAttempt::start(Member& member) {
  auto variables = member.task.environment;
  const int restarts = member.task.restarts;
  if (restarts > 0) variables["TESSERA_RESTART"] = std::to_string(restarts);
  member.process.emplace(command_, variables);
}

bool LaunchAttempt::all_ended() const {
  return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
    return member.process->ended() && !(should_continue() && will_restart(member));
  });
}

void LaunchAttempt::watch() {
  while (!all_ended()) {
    wait();
    take_signals();
    for (Member& member : members_) take_output(member, false);
    reap();
    restart_or_drop();
    escalate();
  }
}

void LaunchAttempt::wait() {
  std::vector<pollfd> list = {{signals_, POLLIN, 0}};
  if (!output_.full()) {
    for (Member& member : members_) {
      for (const ChildStream& stream : member.process->streams()) {
        if (stream.pipe.valid()) list.push_back({stream.pipe.get(), POLLIN, 0});
      }
    }
  }
  if (!output_.empty()) list.push_back({output_.descriptor(), POLLOUT, 0});
  poll(list.data(), list.size(), static_cast<int>(max_poll_time.count()));
  if (!output_.empty() && list.back().revents != 0) output_.write();
}

void LaunchAttempt::take_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD) stop(number);
  }
}

void LaunchAttempt::stop(int signal) {
  if (stopped_by_ != 0) {
    output_.add(2, str("launch: ", signal_name(signal), " again: killing all"));
    return signal_all(SIGKILL);
  }
  stopped_by_ = signal;
  output_.add(2, str("launch: ", signal_name(signal),
                     ": waiting for the processes to leave; a second signal kills them"));
  // A chief needs its parameter servers to save.
  if (!signal_type("chief", signal)) return signal_all(signal);
  signal_type("evaluator", signal);
}

void LaunchAttempt::signal_all(int signal) {
  for (const Member& member : members_) member.process->signal(signal);
}

bool LaunchAttempt::signal_type(const std::string& type, int signal) {
  bool any = false;
  for (const Member& member : members_) {
    if (member.task.type != type || member.process->ended()) continue;
    member.process->signal(signal);
    any = true;
  }
  return any;
}

void LaunchAttempt::take_output(Member& member, bool ended) {
  std::array<char, 65536> bytes;
  const std::string label = member.task.label();
  for (ChildStream& stream : member.process->streams()) {
    const auto line = [&](const std::string& text) {
      output_.add(stream.target, label, member.number, text);
    };
    for (int reads = 0; stream.pipe.valid() && reads < max_reads; ++reads) {
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

void LaunchAttempt::reap() {
  std::vector<Member*> ended;
  for (Member& member : members_) {
    if (member.process->reap()) ended.push_back(&member);
  }
  // Among tasks found dead together the cause is more likely an indispensable task than an
  // expendable one, and one killed by a signal than one that exited.
  const auto key = [](const Member* member) {
    return std::pair(member->task.expendable, !WIFSIGNALED(member->process->status()));
  };
  std::stable_sort(ended.begin(), ended.end(),
                   [&](const Member* a, const Member* b) { return key(a) < key(b); });
  for (Member* member : ended) {
    take_output(*member, true);
    handle_end(*member);
  }
}

void LaunchAttempt::handle_end(Member& member) {
  const bool failed = member.process->failed();
  const bool last = member.task.type == "worker" && !has_working_peer(member);
  // A chief that was asked to exit has not finished the job.
  if (member.task.type == "chief" && !failed && signals_sent_ == 0) {
    over_ = true;
    first_ = nullptr;
  } else if (failed && should_continue() && member.task.expendable &&
             (!last || member.task.restarts < options_.max_restarts)) {
    member.decision_time = Clock::now();
    if (blames_another(*member.process)) *member.decision_time += wait_for_blamed;
  } else if (failed && stopped_by_ == 0) {
    report_failure(member);
  }
  if (!should_continue() && !next_signal_) next_signal_ = Clock::now() + options_.grace;
}

void LaunchAttempt::report_failure(const Member& member) {
  const bool blames = blames_another(*member.process);
  if (!over_ && first_ == nullptr) signal_type("evaluator", SIGTERM);
  const bool first = !over_ && (first_ == nullptr || (blames_another(*first_->process) && !blames));
  if (first) first_ = &member;
  if ((first || (over_ && signals_sent_ == 0)) && !blames && !all_ended()) {
    output_.add(2, str("launch: ", member.task.name(), " failed: ", describe(member)));
  }
}

bool LaunchAttempt::will_restart(const Member& member) const {
  return member.decision_time && member.task.restarts < options_.max_restarts;
}

bool LaunchAttempt::has_working_peer(const Member& member) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& other) {
    return &other != &member && other.task.type == member.task.type &&
           (!other.process->failed() || will_restart(other));
  });
}

void LaunchAttempt::restart_or_drop() {
  for (Member& member : members_) {
    if (!should_continue() || !member.decision_time || Clock::now() < *member.decision_time)
      continue;
    const std::string text = str("launch: ", member.task.name(), " failed: ", describe(member));
    const bool again = will_restart(member);
    member.decision_time.reset();
    if (!again) {
      output_.add(2, text + "; the job goes on without it");
      continue;
    }
    ++member.task.restarts;
    output_.add(2, str(text, "; restart ", member.task.restarts, " of ", options_.max_restarts));
    start(member);
  }
}

void LaunchAttempt::escalate() {
  if (!next_signal_ || Clock::now() < *next_signal_ || all_ended()) return;
  std::vector<LaunchTask> tasks;
  for (const Member& member : members_) {
    if (!member.process->ended()) tasks.push_back(member.task);
  }
  const int signal = signals_sent_ == 0 ? SIGTERM : SIGKILL;
  output_.add(2, str("launch: ", names_of(tasks), " did not leave: ", signal_name(signal)));
  signal_all(signal);
  // A stopped process only handles SIGKILL and SIGCONT.
  if (signals_sent_++ == 0) signal_all(SIGCONT);
  next_signal_ = Clock::now() + options_.kill_after;
}

std::string LaunchAttempt::describe(const Member& member) const {
  const std::chrono::duration<double> time = member.process->end() - start_;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", time.count());
  return str(describe_status(member.process->status()), ", after ", seconds, " s");
}

int LaunchAttempt::first_status() const {
  return first_ == nullptr ? 0 : first_->process->status();
}

std::string LaunchAttempt::summary() const {
  return str(first_->task.name(), " failed first: ", describe(*first_));
}

}  // namespace tessera::detail
