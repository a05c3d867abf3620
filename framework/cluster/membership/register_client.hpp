#pragma once

#include <mutex>
#include <string>
#include <thread>

#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/membership/membership_store.hpp>
#include <tessera/framework/cluster/membership/register_messages.hpp>

namespace tessera::detail {

/// A member's connection with the launcher's register, and the thread that serves it, so that a
/// process that computes or blocks gives signs of life, too.
class RegisterClient : public MembershipStore {
 public:
  explicit RegisterClient(const MembershipOptions& options);
  ~RegisterClient() override;
  RegisterClient(const RegisterClient&) = delete;
  RegisterClient& operator=(const RegisterClient&) = delete;

  void report_lost(uint64_t generation, const std::string& id, const std::string& reason) override;
  void leave() override;
  bool finish(uint64_t generation) override;

 private:
  FrameSocket connect();
  void run();
  void serve();
  void wait();
  void handle_all();
  void handle(const RegisterMessage& message);
  void send(const RegisterMessage& message);

  MembershipOptions options_;
  Waker waker_;
  std::mutex mutex_;  ///< guards sending and closing, and the next member
  bool stop_ = false;
  FrameSocket socket_;
  std::thread thread_;
};

}  // namespace tessera::detail
