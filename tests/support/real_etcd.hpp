#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/free_port.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// A real etcd in a process of its own, with its data in a temporary folder.
class RealEtcd {
 public:
  RealEtcd() : port_(free_port()) {
    const std::string peers = str("http://127.0.0.1:", free_port());
    pid_ = ::fork();
    if (pid_ != 0) return;
    if (::freopen((folder_ / "log").c_str(), "w", stderr) == nullptr) ::_exit(127);
    ::execlp("etcd", "etcd", "--data-dir", (folder_ / "data").c_str(), "--listen-client-urls",
             url().c_str(), "--advertise-client-urls", url().c_str(), "--listen-peer-urls",
             peers.c_str(), "--initial-advertise-peer-urls", peers.c_str(), "--initial-cluster",
             ("default=" + peers).c_str(), nullptr);
    ::_exit(127);
  }
  ~RealEtcd() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RealEtcd(const RealEtcd&) = delete;
  RealEtcd& operator=(const RealEtcd&) = delete;
  std::string url() const { return str("http://127.0.0.1:", port_); }
  void signal(int number) const { ::kill(pid_, number); }

 private:
  TempFolder folder_;
  int port_;
  pid_t pid_;
};

/// Whether etcd is installed (Debian: etcd-server).
inline bool has_etcd() { return std::system("etcd --version > /dev/null 2>&1") == 0; }

}  // namespace tessera::test
