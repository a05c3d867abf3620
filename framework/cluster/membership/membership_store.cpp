#include <tessera/framework/cluster/membership/membership_store.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hex.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/membership/etcd_store.hpp>
#include <tessera/framework/cluster/membership/register_client.hpp>

namespace tessera::detail {
namespace {

constexpr size_t id_digits = 32;

}  // namespace

std::unique_ptr<MembershipStore> MembershipStore::join(const MembershipOptions& options) {
  if (options.where.find("://") != std::string::npos) return std::make_unique<EtcdStore>(options);
  return std::make_unique<RegisterClient>(options);
}

Membership MembershipNews::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

Membership MembershipNews::wait_for_change(uint64_t revision, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return newest_.revision > revision; });
  return newest_;
}

Membership MembershipNews::wait_for_end_of(uint64_t generation,
                                           std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience,
                    [&] { return newest_.is_over() || newest_.generation > generation; });
  return newest_;
}

void MembershipNews::set_on_change(std::function<void(const Membership&)> on_change) {
  const std::lock_guard calling(callback_mutex_);
  on_change_ = std::move(on_change);
  told_ = 0;
  const Membership now = newest();
  if (!on_change_ || now.revision == 0) return;
  told_ = now.revision;
  on_change_(now);
}

bool MembershipNews::update(const Membership& membership) {
  {
    const std::lock_guard lock(mutex_);
    if (newest_.phase == MembershipPhase::expelled || membership.revision <= newest_.revision ||
        membership.generation < newest_.generation) {
      return false;
    }
    newest_ = membership;
  }
  publish(membership);
  return true;
}

void MembershipNews::expel(const std::string& reason) {
  Membership last;
  {
    const std::lock_guard lock(mutex_);
    if (newest_.is_over()) return;
    newest_.phase = MembershipPhase::expelled;
    newest_.reason = reason;
    // Ends waits for a change, although the register did not number this one.
    ++newest_.revision;
    last = newest_;
  }
  publish(last);
}

void MembershipNews::publish(const Membership& membership) {
  changed_.notify_all();
  const std::lock_guard calling(callback_mutex_);
  if (!on_change_ || membership.revision <= told_) return;
  told_ = membership.revision;
  on_change_(membership);
}

std::string register_address(const EnvironmentLookup& environment) {
  return Environment(environment).find("TESSERA_MEMBERS").value_or("");
}

std::string new_member_id() { return to_hex(random_nonce()).substr(0, id_digits); }

Cluster cluster_of(const Membership& membership, const std::string& id, const std::string& job,
                   const JobAccess& access) {
  const int rank = membership.rank_of(id);
  if (rank < 0) {
    throw StateError("elastic",
                     str("this process is a member of generation ", membership.generation),
                     str("it is none of its ", membership.members.size(), " members"),
                     "wait for a generation that it is in, or join again");
  }
  const std::vector<Member>& members = membership.members;
  const auto self = members.begin() + rank;
  Cluster cluster;
  cluster.rank = rank;
  cluster.size = static_cast<int>(members.size());
  cluster.local_rank = static_cast<int>(std::count_if(
      members.begin(), self, [&](const Member& each) { return each.host == self->host; }));
  cluster.address = members.front().address;
  cluster.port = members.front().port;
  cluster.job = str(job, "/generation ", membership.generation);
  cluster.source = "TESSERA_MEMBERS";
  cluster.insecure = access.insecure;
  cluster.encrypt = access.encrypt;
  if (!access.secret.empty()) {
    cluster.secret = to_hex(
        proof_of(access.secret, {"elastic: generation", std::to_string(membership.generation)}));
  }
  return cluster;
}

}  // namespace tessera::detail
