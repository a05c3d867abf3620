#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// Sends tensors to other ranks and receives theirs beside the collectives, which may wait for each
/// other meanwhile. Messages from one rank to another are numbered. Each is preceded by a note of
/// what it is, so that ranks that send in different orders get an error in place of waiting. A
/// thread for each rank that sends, and one for all that is sent, move the messages in the
/// background.
class TransferLane {
 public:
  /// `fail` is called once, on one of the lane's threads, with the line of the first error.
  TransferLane(Transport& transport, std::function<void(const std::string& line)> fail);
  /// If messages are in transit, the transport is aborted.
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  /// Posts the receives and starts the sends of one exchange; never blocks. Returns the work of the
  /// receives; null if there are none. `what` describes it, equally on all of its ranks; tensors
  /// are contiguous and not empty. Throws CommError once the transport is aborted.
  WorkPtr exchange(const std::string& what, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs);
  /// Returns once what was sent has left, after a few seconds at most.
  void flush();

 private:
  class Edge;
  class ReceivedWork;

  Edge& edge(std::unique_ptr<Edge>& slot);
  void on_error(const std::string& line);

  Transport& transport_;
  std::function<void(const std::string&)> fail_;
  std::mutex mutex_;
  std::map<int, uint64_t> sent_, awaited_;  ///< numbers of the next messages, by rank
  bool failed_ = false;
  std::unique_ptr<Edge> out_;                ///< all that is sent
  std::map<int, std::unique_ptr<Edge>> in_;  ///< what is received, by rank
};

}  // namespace tessera::detail
