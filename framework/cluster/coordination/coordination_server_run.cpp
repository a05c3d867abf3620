#include <algorithm>
#include <cstdio>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_server.hpp>
#include <tessera/framework/cluster/rank_text.hpp>

namespace tessera {

using namespace std::chrono_literals;

namespace {

constexpr auto line_interval = 10s;
/// What ranks may take to tell their last calls when the run ends.
constexpr auto ask_time = 500ms;
/// What they may take to read that it is over.
constexpr auto close_time = 1s;

}  // namespace

void CoordinationServer::greet(Connection& connection, const Frame& frame) {
  if (frame.type != FrameType::hello) {
    throw BadFrame(str("a frame of type ", static_cast<int>(frame.type), " first of all"));
  }
  Hello hello = decode_hello(frame.body);
  const std::string refused = refusal(connection, hello);
  if (!refused.empty()) {
    connection.refused = true;
    connection.deadline = now_ + 1s;
    connection.socket.send(FrameType::refused, refused);
    return connection.socket.finish_sending();
  }
  connection.rank = hello.peer.rank;
  connection.socket.set_max_body(max_body_bytes);
  hello.peer.address = other_address(connection.socket.descriptor());
  present_[static_cast<size_t>(connection.rank)] = hello.peer;
  connection.socket.send(FrameType::accepted);
}

std::string CoordinationServer::refusal(const Connection& connection, const Hello& hello) const {
  const auto refuse = [&](const std::string& expected, const std::string& received,
                          const std::string& fix) {
    return std::string(ConfigError("control", expected, received, fix).what());
  };
  const Peer& peer = hello.peer;
  const std::string address = address_text(options_.address, options_.port);
  if (!options_.job.empty() && hello.job != options_.job) {
    return refuse(str("the processes that meet at ", address, " belong to one run"),
                  str("job ", in_quotes(hello.job), " of ", peer.describe(),
                      ", rank 0 has another"),
                  "give each run a port of its own");
  }
  if (hello.size != options_.size) {
    return refuse("all ranks are told the same number of processes",
                  str(hello.size, " of ", peer.describe(), ", ", options_.size, " of rank 0"),
                  "start all ranks with the same arguments");
  }
  if (peer.rank < 0 || peer.rank >= options_.size) {
    return refuse(str("ranks of ", options_.size, " processes are 0 to ", options_.size - 1),
                  peer.describe(), "number the processes from 0");
  }
  const std::optional<Peer>& present = present_[static_cast<size_t>(peer.rank)];
  if (peer.rank == 0 ? connection.own : !present.has_value()) return "";
  const std::string first = present ? present->describe() : "rank 0 of this run";
  return refuse("each rank is one process",
                str(peer.describe(), " at ", address, ", where ", first, " already is"),
                "give each process a rank of its own, and each run a port of its own");
}

void CoordinationServer::tick_waiting() {
  const std::vector<int> absent = missing();
  if (absent.empty()) return start();
  if (now_ - begin_ >= options_.connect_timeout) {
    const double seconds = std::chrono::duration<double>(options_.connect_timeout).count();
    const std::string here = address_text(options_.address, options_.port);
    return end(CommError("control", str("all ", options_.size, " ranks join at ", here),
                         str("after ", seconds, " s no sign of ", rank_names(absent)),
                         "start them with this address and port, or see their output")
                   .what());
  }
  if (now_ < next_line_) return;
  next_line_ = now_ + line_interval;
  say(str("[control] waiting for ", rank_names(absent)));
}

void CoordinationServer::start() {
  std::vector<Peer> peers;
  for (const std::optional<Peer>& peer : present_) peers.push_back(*peer);
  // Ranks beside rank 0 may have come over loopback, where those on other hosts do not find them.
  std::string here = options_.address;
  for (const Connection& each : connections_) {
    const std::string address = own_address(each.socket.descriptor());
    if (each.rank > 0 && (each.rank == 1 || is_loopback(here))) here = address;
  }
  for (Peer& peer : peers) {
    if (peer.rank == 0 || is_loopback(peer.address)) peer.address = here;
  }
  BodyWriter body;
  body.number(peers.size());
  for (const Peer& peer : peers) body.peer(peer);
  judge_.emplace(std::move(peers), options_.timeout, now_);
  phase_ = Phase::running;
  broadcast(FrameType::started, body.bytes());
}

void CoordinationServer::leave(int rank, const std::optional<CallRecord>& last) {
  const std::string reason = judge_->left(rank, last, now_);
  if (!reason.empty()) end(reason);
  bool all = true;
  for (int each = 0; each < options_.size; ++each) all = all && !judge_->is_there(each);
  if (all && phase_ == Phase::running) return finish(FrameType::farewell, "");
  // Rank 0 stays until all have left.
  for (Connection& each : connections_) {
    if (each.rank == rank && rank != 0) each.socket.send(FrameType::farewell);
  }
}

void CoordinationServer::answer(const std::optional<Round>& complete) {
  if (!complete) return;
  if (complete->is_check) {
    return broadcast(FrameType::checked, BodyWriter().text(complete->key).bytes());
  }
  for (size_t rank = 0; rank < complete->texts.size(); ++rank) {
    BodyWriter body;
    body.text(complete->key).number(rank).text(*complete->texts[rank]);
    broadcast(FrameType::gathered, body.bytes());
  }
}

void CoordinationServer::end(const std::string& reason) {
  if (phase_ == Phase::asking || phase_ == Phase::over) return;
  listener_.reset();
  reason_ = reason;
  if (!judge_) return finish(FrameType::end, reason);
  phase_ = Phase::asking;
  deadline_ = now_ + ask_time;
  broadcast(FrameType::ask);
  end_if_answered();
}

void CoordinationServer::end_if_answered() {
  if (phase_ != Phase::asking) return;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (judge_->is_there(rank) && !answered_.contains(rank)) return;
  }
  finish(FrameType::end, end_text(options_.job, reason_, judge_->reports()));
}

void CoordinationServer::finish(FrameType type, const std::string& body) {
  listener_.reset();
  phase_ = Phase::over;
  deadline_ = now_ + close_time;
  broadcast(type, body);
}

bool CoordinationServer::finished() const {
  if (phase_ != Phase::over) return false;
  const auto is_member = [](const Connection& each) { return each.rank >= 0 && !each.gone; };
  return deadline_ <= now_ || std::none_of(connections_.begin(), connections_.end(), is_member);
}

void CoordinationServer::broadcast(FrameType type, std::string_view body) {
  // Backwards, as rank 0's own is the first: its process may end once it has read this.
  for (auto each = connections_.rbegin(); each != connections_.rend(); ++each) {
    if (each->rank >= 0 && !each->gone) each->socket.send(type, body);
  }
}

std::vector<int> CoordinationServer::missing() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < present_.size(); ++rank) {
    if (!present_[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

void CoordinationServer::say(const std::string& line) const {
  if (options_.say) return options_.say(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace tessera
