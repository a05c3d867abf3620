#include <tessera/framework/io/format/directory_claim.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>

namespace tessera::detail {
namespace {

using Clock = std::chrono::steady_clock;

// ".tessera-claim-NUMBER", by own_number(): each claim has a unique file name, so that a process
// can only remove the claim that it means to.
constexpr std::string_view claim_prefix = ".tessera-claim-";

void sleep_a_little() {
  // Random, so that two processes that found each other's claims do not stay in step.
  static std::minstd_rand random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 30));
}

/// Returns when a file was last renewed; absent if it is gone.
std::optional<std::pair<int64_t, int64_t>> renewed(const std::string& path) {
  // Opens the file, since network file systems ask the server then.
  const FileDescriptor file = open_descriptor(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return std::nullopt;
  return std::pair<int64_t, int64_t>(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

/// Watches the claims of other processes on a directory.
class OtherClaims {
 public:
  OtherClaims(std::string directory, const ClaimTimes& times)
      : directory_(std::move(directory)), times_(times) {}

  enum class Liveness { none, unknown, alive };

  /// Looks again. A claim is unknown as long as it may still turn out to be void.
  Liveness scan(const std::string& own) {
    std::error_code error;
    Liveness liveness = Liveness::none;
    for (const std::string& name : names_in(directory_, error)) {
      if (!name.starts_with(claim_prefix) || name == own) continue;
      const std::optional<Owner> owner = owner_of(name.substr(claim_prefix.size()));
      if (!owner) continue;
      const Liveness claim = classify(name, *owner);
      if (claim == Liveness::none) continue;
      if (liveness != Liveness::alive) holder_ = name;
      liveness = std::max(liveness, claim);
    }
    return liveness;
  }

  /// Removes what the processes of void claims left, and then these claims.
  void remove_void() {
    std::vector<Owner> owners;
    for (const auto& [name, owner] : void_) owners.push_back(owner);
    if (!owners.empty()) remove_leftovers(directory_, owners);
    for (const auto& [name, owner] : void_) ::unlink(path_in(directory_, name).c_str());
  }

  /// Describes the process that holds the directory, as found by the last look.
  std::string holder() const {
    const std::optional<Owner> owner = owner_of(holder_.substr(claim_prefix.size()));
    std::string host;
    try {
      host = one_line(read_file(path_in(directory_, holder_), 256));
    } catch (const FileError&) {
      // It ended the claim, or has not written its host yet.
    }
    return str("another process that does, ", owner->pid, " on ", host.empty() ? "a host" : host);
  }

 private:
  struct Watched {
    std::pair<int64_t, int64_t> renewed;
    Clock::time_point renewed_at;
    bool is_renewed = false;
  };

  Liveness classify(const std::string& name, const Owner& owner) {
    if (void_.contains(name)) return Liveness::none;
    const auto now = renewed(path_in(directory_, name));
    if (!now) return Liveness::none;
    if (has_ended(owner)) {
      void_.emplace(name, owner);
      return Liveness::none;
    }
    if (owner.machine == this_process().machine) return Liveness::alive;
    Watched& watched = watched_.try_emplace(name, Watched{*now, Clock::now()}).first->second;
    if (watched.renewed != *now) watched = {*now, Clock::now(), true};
    if (Clock::now() - watched.renewed_at > times_.heartbeat_timeout) {
      void_.emplace(name, owner);
      return Liveness::none;
    }
    return watched.is_renewed ? Liveness::alive : Liveness::unknown;
  }

  const std::string directory_;
  const ClaimTimes times_;
  std::map<std::string, Watched> watched_;
  std::map<std::string, Owner> void_;
  std::string holder_;
};

/// A claim of this process: a lock on the directory, which processes of this machine see at once,
/// and a file in it that is renewed.
class OwnClaim final : public DirectoryClaim {
 public:
  OwnClaim(std::string directory, FileDescriptor lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}
  ~OwnClaim() override { remove(); }

  bool is_valid() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !name_.empty() && exists(path());
  }
  void end() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    remove();
  }
  /// Returns whether its lock, if any, is on the directory that exists now.
  bool is_of_directory() const { return !lock_.valid() || is_at(lock_, directory_); }

  /// Creates the claim's file. Throws FileError if another process holds a claim.
  void take(const ClaimTimes& times) {
    const std::lock_guard<std::mutex> lock(mutex_);
    remove();
    OtherClaims others(directory_, times);
    const Clock::time_point end = Clock::now() + times.acquire_timeout;
    for (;;) {
      OtherClaims::Liveness liveness = others.scan(name_);
      if (liveness == OtherClaims::Liveness::none) {
        // A concurrent process also looks after creating its own file: at most one finds no other.
        if (!make()) return;
        liveness = others.scan(name_);
        if (liveness == OtherClaims::Liveness::none) break;
        remove();
      }
      if (liveness == OtherClaims::Liveness::alive && Clock::now() >= end) {
        throw FileError(directory_, "one run at a time saves its checkpoints here", others.holder(),
                        "end it, or use another directory");
      }
      sleep_a_little();
    }
    others.remove_void();
    heartbeat_thread_ =
        std::thread([this, path = path(), heartbeat_interval = times.heartbeat_interval] {
          renew(path, heartbeat_interval);
        });
  }

 private:
  std::string path() const { return path_in(directory_, name_); }

  /// Returns false if nothing can be written; saving will report the reason.
  bool make() {
    name_ = str(claim_prefix, own_number());
    const FileDescriptor file = open_descriptor(path(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (!file.valid()) {
      name_.clear();
      return false;
    }
    const std::string host = host_name();
    // Used in other processes' error texts only.
    write_all(file.get(), std::as_bytes(std::span(host)));
    return true;
  }

  void remove() {
    if (heartbeat_thread_.joinable()) {
      {
        const std::lock_guard<std::mutex> lock(heartbeat_mutex_);
        stop_ = true;
      }
      wake_.notify_one();
      heartbeat_thread_.join();
      stop_ = false;
    }
    if (!name_.empty()) ::unlink(path().c_str());
    name_.clear();
  }

  void renew(const std::string& path, std::chrono::milliseconds interval) {
    std::unique_lock<std::mutex> lock(heartbeat_mutex_);
    // By name, so that a claim that was taken over is not renewed.
    while (!wake_.wait_for(lock, interval, [&] { return stop_; })) {
      ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    }
  }

  const std::string directory_;
  const FileDescriptor lock_;
  mutable std::mutex mutex_;
  std::string name_;  ///< empty: no file
  std::thread heartbeat_thread_;
  std::mutex heartbeat_mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
};

/// Locks a directory; absent with errno set if it cannot be opened, invalid if the file system has
/// no locks. Throws FileError if another process holds the lock.
std::optional<FileDescriptor> lock_directory(const std::string& path,
                                             std::chrono::milliseconds timeout) {
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    FileDescriptor lock = try_lock_folder(path);
    if (lock.valid() || errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) return lock;
    if (errno != EWOULDBLOCK) return std::nullopt;
    if (Clock::now() >= end) break;
    sleep_a_little();
  }
  throw FileError(path, "one run at a time saves its checkpoints here", "another process that does",
                  "end it, or use another directory");
}

}  // namespace

std::shared_ptr<DirectoryClaim> claim_directory(const std::string& directory,
                                                const ClaimTimes& times) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<OwnClaim>> held;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::optional<std::string> path =
      make_folders(directory) ? real_path(directory) : std::nullopt;
  // Saving will report the reason.
  if (!path) return nullptr;
  std::weak_ptr<OwnClaim>& known = held[*path];
  std::shared_ptr<OwnClaim> claim = known.lock();
  if (!claim || !claim->is_of_directory()) {
    std::optional<FileDescriptor> locked = lock_directory(*path, times.acquire_timeout);
    if (!locked) return nullptr;
    claim = std::make_shared<OwnClaim>(*path, std::move(*locked));
    known = claim;
  }
  if (!claim->is_valid()) claim->take(times);
  return claim;
}

}  // namespace tessera::detail
