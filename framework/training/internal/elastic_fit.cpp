#include <tessera/framework/training/internal/elastic_fit.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/training/internal/local_steps.hpp>
#include <tessera/framework/training/internal/rehost.hpp>

namespace tessera::detail {
namespace {

constexpr const char* snapshots_key = "elastic: snapshots";

/// Histories of the fits of this process, as JSON: of fits that others completed, too.
std::vector<Json>& histories() {
  static std::vector<Json> all;
  return all;
}

/// The number of the newest fit that was complete when this process joined; 0: none.
uint64_t& newest_missed_fit() {
  static uint64_t number = 0;
  return number;
}

/// Returns the facts that the processes of a fit share. After the first fit, a process that joins
/// gets the optimizer's state from a snapshot.
RunFingerprint shared_facts(RunFingerprint facts, uint64_t number) {
  if (number > 1) {
    std::erase_if(facts, [](const auto& fact) { return fact.first.starts_with("optimizer's "); });
  }
  return facts;
}

/// Returns who of `own` is gone in `next`, with the reasons; empty if nobody was lost.
std::string lost_text(const Membership& own, const Membership& next) {
  std::string lost;
  for (const Departure& each : next.departures) {
    if (each.reason.empty() || own.rank_of(each.member.id) < 0) continue;
    lost += str(lost.empty() ? "" : "; ", one_line(each.member.describe()), ": ",
                one_line(each.reason, 300));
  }
  return lost;
}

}  // namespace

FitSnapshotsMaker& fit_snapshots() {
  static FitSnapshotsMaker maker;
  return maker;
}

std::unique_ptr<ElasticFit> ElasticFit::make(const FitRun& run, RunFingerprint facts) {
  ElasticRun* const elastic = ElasticRun::current();
  const bool own_steps = dynamic_cast<LocalSteps*>(run.state.executor.get()) != nullptr;
  if (!elastic || !own_steps || !fit_snapshots()) return nullptr;
  if (run.state.layouts.pipeline()) {
    throw ConfigError("fit", "the processes of a model in stages stay the same",
                      "an elastic run of " + describe(*run.state.layouts.pipeline()),
                      "start it without --elastic, and with a checkpoint to resume from");
  }
  return std::unique_ptr<ElasticFit>(new ElasticFit(run, *elastic, std::move(facts)));
}

ElasticFit::ElasticFit(const FitRun& run, ElasticRun& elastic, RunFingerprint facts)
    : run_(run),
      state_(run.state),
      elastic_(elastic),
      number_(elastic.begin_fit()),
      facts_(shared_facts(std::move(facts), number_)),
      snapshots_(fit_snapshots()(run.trainer, run.callbacks.all())) {
  state_.elastic = this;
}

ElasticFit::~ElasticFit() {
  state_.elastic = nullptr;
  // From here on a loss ends the run, as that of any run.
  elastic_.end_fit();
}

void ElasticFit::meet() {
  const bool begins_anew = number_ == 1 || begun_ || elastic_.has_lost_members();
  if (!next_ && begins_anew && elastic_.is_outdated()) {
    next_ = elastic_.wait_for_next(CommError("elastic", "processes meet", "nobody", ""));
  }
  if (!next_) return;
  lost_ = lost_text(elastic_.membership(), *next_);
  elastic_.enter(*std::exchange(next_, std::nullopt));
  reconnect_elastic();
  const Mesh mesh = hosted_now(state_.layouts.mesh());
  // After a step, values are those of any moment of it: only a snapshot's count.
  if (!rehost(run_.trainer, state_, mesh, /*keep=*/!stepped_)) kept_all_ = false;
  since_ = -1;
}

bool ElasticFit::is_complete() {
  const bool tells = number_ > 1 && elastic_.generation() > 1;
  const Json own = {{"fit", number_}, {"histories", tells ? Json(histories()) : Json()}};
  const std::string text = to_json_text(own, -1);
  while (true) {
    uint64_t first = number_, last = number_;
    Json complete;
    for (const std::string& each :
         communicator_of(state_.layouts.mesh()).gather("elastic: fit", text)) {
      const Json other = parse_json(each, "elastic: fit");
      const auto number = other.at("fit").get<uint64_t>();
      first = std::min(first, number);
      if (number > last) complete = other.at("histories");
      last = std::max(last, number);
    }
    if (first == last) return false;
    if (number_ == last) continue;  // the others are on their way
    const Json& history = complete.at(number_ - 1);
    state_.progress.history = History::from_json(history, JsonPath("elastic: history"));
    keep_history(history);
    newest_missed_fit() = number_;
    elastic_.miss_fit();
    std::cerr << str("[elastic] fit number ", number_,
                     " of the run was complete when this process joined\n")
              << std::flush;
    return true;
  }
}

bool ElasticFit::agree() {
  // One that joined after earlier fits lacks their results.
  const bool has_values = kept_all_ && (number_ == 1 || newest_missed_fit() < number_ - 1);
  const Json own = {{"stepped", stepped_}, {"kept", has_values}, {"snapshots", snapshots_->kept()}};
  std::vector<Json> kept;
  any_stepped_ = false;
  bool all_kept = true;
  for (const std::string& text :
       communicator_of(state_.layouts.mesh()).gather(snapshots_key, to_json_text(own, -1))) {
    const Json other = parse_json(text, snapshots_key);
    any_stepped_ = any_stepped_ || other.at("stepped").get<bool>();
    all_kept = all_kept && other.at("kept").get<bool>();
    kept.push_back(other.at("snapshots"));
  }
  // Values that a process lacks are as good as steps.
  any_stepped_ = any_stepped_ || !all_kept;
  return snapshots_->choose(kept);
}

void ElasticFit::start(const std::function<void()>& begin) {
  const Mesh& mesh = state_.layouts.mesh();
  const int64_t done = state_.steps();
  check_same_on_all_ranks(mesh, "fit", facts_);
  const bool whole = agree();
  run_.callbacks.set_params(is_first_rank(mesh), whole);
  const FitPosition first = {
      .epoch = run_.options.initial_epoch, .pass = run_.options.initial_epoch, .batch = 0};
  if (!std::exchange(begun_, true)) {
    begin();
  } else {
    // A callback that restores from disk sets another position.
    if (any_stepped_ && !whole)
      state_.progress = {.position = first, .history = {}, .epoch_logs = {}};
    const Callback::MembershipChange change{.processes = communicator_of(mesh).size(),
                                            .reason = lost_};
    state_.exchange.do_on_all_ranks([&] { run_.callbacks.membership_change(change); });
  }
  const FitPosition& now = state_.progress.position;
  restore(whole, now.epoch != first.epoch || now.step > 0);
  tell(whole, done);
  check_size();
}

void ElasticFit::restore(bool whole, bool read_from_disk) {
  if (whole) {
    state_.exchange.set_stop(false);
    snapshots_->restore();
  } else if (any_stepped_ && !read_from_disk) {
    throw StateError(
        "elastic",
        "the processes that are left, and neighbours of those that are gone, have the state of "
        "training, or a checkpoint has it",
        lost_.empty() ? "neither" : lost_,
        "start the run again; add BackupAndRestore (--checkpoint-dir with --resume)");
  }
}

/// Tells how training goes on after a change. `done`: the steps that this process had done.
void ElasticFit::tell(bool whole, int64_t done) const {
  if (elastic_.generation() <= 1 || !any_stepped_) return;
  const FitPosition& at = state_.progress.position;
  std::string line =
      str("[elastic] generation ", elastic_.generation(), ", ",
          communicator_of(state_.layouts.mesh()).size(), " processes",
          lost_.empty() ? "" : " after the loss of " + lost_, ": going on at epoch ", at.epoch + 1,
          ", step ", at.step + 1, whole ? "" : ", from a checkpoint on disk");
  // A newcomer has done none.
  const int64_t again = done - state_.steps();
  if (stepped_ && again > 0) {
    line += str("; ", again, again == 1 ? " step is" : " steps are", " done again");
  }
  say(line);
}

/// Lets callbacks save what was restored. No epoch has begun that would go on with the metrics.
void ElasticFit::interrupt() {
  state_.metrics.begin_epoch(state_.progress.position.step);
  run_.callbacks.interrupt();
}

/// Saves and ends the fit with fewer processes than it asks for.
void ElasticFit::check_size() {
  const int size = communicator_of(state_.layouts.mesh()).size();
  if (size >= run_.options.elastic.min_processes) return;
  state_.exchange.do_on_all_ranks([this] { interrupt(); });
  throw StateError("fit",
                   str("at least ", run_.options.elastic.min_processes,
                       " processes train (elastic.min_processes)"),
                   str(size, lost_.empty() ? "" : "; lost: " + lost_),
                   "start more processes, or allow fewer");
}

void ElasticFit::end() {
  communicator_of(state_.layouts.mesh()).gather("elastic: end of fit", "");
  keep_history(state_.progress.history.as_json());
}

void ElasticFit::keep_history(const Json& history) const {
  // Fits that failed have none.
  histories().resize(number_ - 1);
  histories().push_back(history);
}

void ElasticFit::recover(const CommError& error) {
  snapshots_->settle();
  try {
    next_ = elastic_.wait_for_next(error);
  } catch (const Interrupted&) {
    has_left_ = true;
    throw;
  } catch (const CommError&) {
    if (elastic_.is_first_of_failed()) save_alone();
    throw;
  }
}

/// Lets callbacks save the newest snapshot, if this process has all of it.
void ElasticFit::save_alone() {
  const Mesh& mesh = state_.layouts.mesh();
  const bool on_cpus = mesh.local_devices().front().type == Device::Type::cpu;
  const auto devices = static_cast<size_t>(mesh.size());
  rehost(run_.trainer, state_,
         create_mesh(mesh.dims(),
                     on_cpus ? virtual_cpus(mesh.size())
                             : std::vector<Device>(devices, mesh.local_devices().front()),
                     mesh.name()),
         /*keep=*/false);
  if (!snapshots_->choose({snapshots_->kept()})) return;
  run_.callbacks.set_params(/*is_first_rank=*/true, /*restored_from_memory=*/true);
  run_.callbacks.membership_change({});
  snapshots_->restore();
  interrupt();
}

void ElasticFit::raise_change(StepStatus& own) {
  if (const int signal = stop_signal()) {
    elastic_.leave();
    // Too few are left without this process: all save.
    if (elastic_.is_broken()) own.raise(StatusLevel::save, std::to_string(signal));
  }
  if (elastic_.is_outdated()) own.raise(StatusLevel::regroup, "");
}

void ElasticFit::regroup() {
  snapshots_->take();
  snapshots_->finish_copies();
  auto& communicator = communicator_of(state_.layouts.mesh());
  if (auto* const processes = dynamic_cast<ProcessCommunicator*>(&communicator)) {
    processes->part();
  }
  throw MembershipChanged("elastic", "the members of a generation stay", "others are to meet", "");
}

void ElasticFit::between_steps() {
  if (since_ < 0 || since_ >= run_.options.elastic.snapshot_every) {
    snapshots_->take();
    since_ = 0;
  }
  ++since_;
  stepped_ = true;
}

void ElasticFit::say(const std::string& line) const {
  if (is_first_rank(state_.layouts.mesh())) std::cerr << line + "\n" << std::flush;
}

}  // namespace tessera::detail
