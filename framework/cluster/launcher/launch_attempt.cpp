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
// How long a member of an elastic run waits before its first restart; twice as long each time.
constexpr auto first_back_off = std::chrono::milliseconds(250);
constexpr auto max_back_off = std::chrono::milliseconds(30000);

/// Whether the process ended because of another one, in whatever order they were found.
bool blames_another(const ChildProcess& child) {
  return WIFEXITED(child.status()) && WEXITSTATUS(child.status()) == exit_of_lost_run;
}

std::chrono::milliseconds back_off(int restarts) {
  return std::min(max_back_off, first_back_off * (1 << std::min(restarts, 10)));
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
  }
  if (options_.min_processes > 0) open_register();
  for (Member& member : members_) start(member);
}

void LaunchAttempt::open_register() {
  const auto& variables = members_.front().task.environment;
  RegisterOptions options;
  options.rules.min_processes = options_.min_processes;
  options.rules.max_processes = options_.max_processes;
  options.rules.expected = options_.processes;
  options.job = variables.at("TESSERA_JOB");
  options.access.secret = variables.at("TESSERA_SECRET");
  options.access.encrypt = options_.encrypt;
  options.say = [this](const std::string& line) { output_.add(2, "launch: " + line); };
  register_.emplace(options);
  for (Member& member : members_) {
    member.task.environment["TESSERA_MEMBERS"] = register_->where();
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
    // Whether an elastic run goes on without a process is decided later, too.
    const bool pending = will_restart(member) || (register_ && member.decision_time);
    return member.process->ended() && !(should_continue() && pending);
  });
}

void LaunchAttempt::watch() {
  while (!all_ended()) {
    wait();
    take_signals();
    for (Member& member : members_) take_output(member, false);
    reap();
    if (register_) serve_register();
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
  auto time = static_cast<int>(max_poll_time.count());
  if (register_) {
    register_->add_to(list);
    time = std::min(time, poll_time(register_->wake_time()));
  }
  if (!output_.empty()) list.push_back({output_.descriptor(), POLLOUT, 0});
  poll(list.data(), list.size(), time);
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

void LaunchAttempt::handle_member_end(Member& member) {
  register_->lose_process(member.process->pid(), describe_status(member.process->status()));
  // It may have told that the run is complete, and that may be all that was missing.
  serve_register();
  const bool lost = register_->membership().phase == MembershipPhase::failed;
  if (!member.process->failed() || stopped_by_ != 0) return;
  if (!should_continue() || lost) return report_failure(member);
  member.decision_time = Clock::now() + back_off(member.task.restarts);
}

void LaunchAttempt::serve_register() {
  register_->serve();
  const Membership& membership = register_->membership();
  if (!membership.is_over() || !should_continue()) return;
  // Members that are about to restart stay away.
  over_ = true;
  if (membership.phase == MembershipPhase::failed) {
    output_.add(2, "launch: " + membership.reason);
    failed_ = true;
  }
  next_signal_ = Clock::now() + options_.grace;
}

void LaunchAttempt::give_up(const Member& last) {
  const auto can_train = [](const Member& member) {
    return !member.process->ended() || member.decision_time;
  };
  const auto left = std::count_if(members_.begin(), members_.end(), can_train);
  if (left >= options_.min_processes) return;
  register_->fail(ConfigError("elastic",
                              str("the run needs at least ", options_.min_processes, " processes"),
                              str(left, " left; ", last.task.name(), ": ", describe(last)),
                              "look at its output; --max-restarts restarts processes that fail")
                      .what());
  report_failure(last);
  register_->serve();
  next_signal_ = Clock::now() + options_.grace;
}

void LaunchAttempt::handle_end(Member& member) {
  if (register_) {
    handle_member_end(member);
    if (!should_continue() && !next_signal_) next_signal_ = Clock::now() + options_.grace;
    return;
  }
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
      if (register_) give_up(member);
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
  if (first_ == nullptr) return failed_ ? W_EXITCODE(exit_of_lost_run, 0) : 0;
  return first_->process->status();
}

std::string LaunchAttempt::summary() const {
  if (first_ == nullptr) return "the elastic run failed";
  return str(first_->task.name(), " failed first: ", describe(*first_));
}

}  // namespace tessera::detail
