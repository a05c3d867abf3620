#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/coordination_server.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"

namespace rendezvous_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::connect_and_send;
using test::error_of;
using test::rank_options;

namespace {

/// Joins as rank 0 on a thread of its own.
std::future<std::shared_ptr<Coordination>> join_later(const CoordinationOptions& options) {
  return std::async(std::launch::async, [options] { return Coordination::join(options); });
}

/// Waits until rank 0 listens.
void wait_for(int port) {
  while (!connect_and_send(port, "").valid()) std::this_thread::sleep_for(1ms);
}

std::string hello_frame(const Hello& hello) {
  return encode_frame(FrameType::hello, encode_hello(hello));
}

}  // namespace

TEST_CASE("ranks may join before rank 0 listens") {
  const int port = free_port();
  auto first = join_later(rank_options(1, 2, port));
  std::this_thread::sleep_for(100ms);
  const auto zero = Coordination::join(rank_options(0, 2, port));
  const auto one = first.get();
  CHECK(one->peers().size() == 2);
  one->leave();
}

TEST_CASE("an occupied port is named") {
  const FileDescriptor holder = listen_on("127.0.0.1", 0);
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&name), &size);
  const int port = ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  const std::string error = error_of([&] { Coordination::join(rank_options(0, 2, port)); });
  CHECK_THAT(error,
             Contains(str("[coordination] rank 0 can listen on port ", port, ". Received: ")));
  CHECK_THAT(error, Contains("in use") && Contains(str("end the program that holds port ", port)));
  // The program that holds the port does not answer.
  CoordinationOptions options = rank_options(1, 2, port);
  options.connect_timeout = 300ms;
  CHECK_THAT(error_of([&] { Coordination::join(options); }),
             Contains(str("[coordination] rank 1 reaches rank 0 at 127.0.0.1:", port,
                          ". Received: it does not answer, for 0.3 s")));
}

TEST_CASE("a rank that cannot connect names the address") {
  const int port = free_port();
  CoordinationOptions options = rank_options(1, 2, port);
  options.connect_timeout = 200ms;
  CHECK_THAT(error_of([&] { Coordination::join(options); }),
             Contains(str("127.0.0.1:", port, ". Received: Connection refused, for 0.2 s")));
  options.address = "no.such.host.invalid";
  CHECK_THAT(error_of([&] { Coordination::join(options); }), Contains("no.such.host.invalid"));
}

TEST_CASE("missing ranks are named while the others wait and when they give up") {
  const int port = free_port();
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto errors = test::on_threads(3, [&](int rank) {
    CoordinationOptions options = rank_options(rank, 5, port);
    options.connect_timeout = 1800ms;
    options.say = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
    Coordination::join(options);
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, Contains(str("[coordination] all 5 ranks must join at 127.0.0.1:", port,
                                   ". Received: after 1.8 s no sign of ranks 3 and 4. To fix: ")));
  }
  CHECK(lines == std::vector<std::string>{"[coordination] waiting for ranks 3 and 4"});
}

TEST_CASE("if rank 0 cannot join, all stop waiting") {
  CoordinationOptions options = rank_options(0, 3, free_port());
  std::promise<void> waits;
  options.say = [&, said = false](const std::string& line) mutable {
    if (line == "[coordination] waiting for ranks 0 and 2" && !std::exchange(said, true)) {
      waits.set_value();
    }
  };
  std::future<std::string> error;
  {
    CoordinationServer hub(options);
    error = std::async(std::launch::async, [port = options.port] {
      return error_of([&] { Coordination::join(rank_options(1, 3, port)); });
    });
    waits.get_future().wait();
    hub.take_own_end().reset();
  }
  CHECK_THAT(error.get(), Contains(str("[coordination] every rank waits until all have joined. "
                                       "Received: rank 0 (pid ",
                                       ::getpid(), " on ")) &&
                              Contains("was lost"));
}

TEST_CASE("a process of another run is refused, and the others continue") {
  const int port = free_port();
  CoordinationOptions zero = rank_options(0, 3, port);
  zero.job = "job a";
  auto hub = join_later(zero);
  const auto changed = [&](int rank, int size, const std::string& job) {
    CoordinationOptions options = rank_options(rank, size, port);
    options.job = job;
    return options;
  };
  auto one = join_later(changed(1, 3, "job a"));
  wait_for(port);
  CHECK_THROWS_WITH(
      Coordination::join(changed(1, 3, "job b")),
      Contains("[coordination] processes that connect to 127.0.0.1:") &&
          Contains("must belong to one run. Received: job \"job b\" of rank 1 (pid ") &&
          !Contains("job a"));
  CHECK_THROWS_AS(Coordination::join(changed(2, 3, "")), ConfigError);
  CHECK_THROWS_WITH(
      Coordination::join(changed(2, 4, "job a")),
      Contains("[coordination] all ranks must be started with the same number of processes. "
               "Received: 4 of rank 2 (pid ") &&
          Contains(", 3 of rank 0"));
  const FileDescriptor beyond =
      connect_and_send(port, hello_frame({"job a", 3, {3, 1, "host", ""}}));
  CHECK_THAT(test::read_all(beyond), Contains("ranks of 3 processes are 0 to 2. Received: rank 3"));
  const FileDescriptor second =
      connect_and_send(port, hello_frame({"job a", 3, {0, 1, "host", ""}}));
  CHECK_THAT(test::read_all(second), Contains("each rank is one process. Received: rank 0 (pid 1"));
  // The first of two processes with one rank is accepted.
  auto first_two = join_later(changed(2, 3, "job a"));
  const auto coordination = hub.get();
  CHECK_THROWS_WITH(Coordination::join(changed(2, 3, "job a")),
                    Contains("[coordination] each rank is one process. Received: rank 2 (pid ") &&
                        Contains("where rank 2 (pid "));
  test::Ranks ranks{coordination, one.get(), first_two.get()};
  const auto errors = test::on_threads(3, [&](int rank) {
    ranks[static_cast<size_t>(rank)]->gather("still", "there");
    ranks[static_cast<size_t>(rank)]->leave();
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("ranks that are to meet others stop waiting") {
  const int port = free_port();
  std::atomic<bool> changed = false;
  const auto options = [&](int rank, int at) {
    CoordinationOptions all = rank_options(rank, 3, at);
    all.given_up = [&] { return changed.load(); };
    return all;
  };
  auto zero = join_later(options(0, port));
  auto one = join_later(options(1, port));
  auto two = join_later(options(2, free_port()));
  CHECK(zero.wait_for(300ms) == std::future_status::timeout);
  CHECK(one.wait_for(0ms) == std::future_status::timeout);
  CHECK(two.wait_for(0ms) == std::future_status::timeout);
  changed = true;
  for (auto* each : {&zero, &one, &two}) {
    CHECK(each->wait_for(2s) == std::future_status::ready);
    CHECK_THAT(error_of([&] { each->get(); }), Contains("[coordination]"));
  }
}

TEST_CASE("a rank that comes while others still meet there asks again") {
  const int port = free_port();
  std::atomic<bool> changed = false;
  CoordinationOptions before = rank_options(0, 2, port);
  before.access.secret = std::string(32, 'a');
  before.given_up = [&] { return changed.load(); };
  CoordinationOptions next = rank_options(1, 2, port);
  next.access.secret = std::string(32, 'b');
  next.given_up = [] { return false; };
  auto former = join_later(before);
  wait_for(port);
  auto one = join_later(next);
  CHECK(one.wait_for(500ms) == std::future_status::timeout);
  changed = true;
  CHECK_THAT(error_of([&] { former.get(); }), Contains("other processes are to meet instead"));
  next.rank = 0;
  const auto zero = Coordination::join(next);
  CHECK(one.get()->peers().size() == 2);
}

TEST_CASE("a rank that gives up needs no answer, and the others see it") {
  const int port = free_port();
  auto zero = join_later(rank_options(0, 2, port));
  const auto one = Coordination::join(rank_options(1, 2, port));
  const auto hub = zero.get();
  one->give_up("others meet");
  CHECK(one->reason(2s) == "others meet");
  CHECK_THAT(hub->reason(5s), Contains("rank 1") && Contains("was lost"));
}

TEST_CASE("an unknown peer that claims rank 2 of 4 first is refused") {
  const int port = free_port();
  const std::string secret(32, 's');
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto with = [&](int rank, const std::string& known) {
    CoordinationOptions options = rank_options(rank, 4, port);
    options.access.secret = known;
    options.say = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
    return options;
  };
  auto hub = join_later(with(0, secret));
  wait_for(port);
  // One sends only a hello, one sends no proof, and one proves it by another secret.
  const Hello hello{"", 4, {2, 4711, "host", ""}, random_nonce()};
  const FileDescriptor silent = connect_and_send(port, hello_frame(hello));
  const FileDescriptor wrong = connect_and_send(
      port, hello_frame(hello) + encode_frame(FrameType::proof, std::string(32, 'x')));
  CHECK_THAT(test::read_all(wrong),
             Contains("must have one secret. Received: another one from rank 2"));
  CHECK_THROWS_WITH(
      Coordination::join(with(2, std::string(32, 'o'))),
      Contains(str("[coordination] all processes that connect to 127.0.0.1:", port,
                   " must have one secret. Received: another one from rank 2 (pid ")) &&
          Contains(") at 127.0.0.1. To fix: give all of them the same "
                   "TESSERA_SECRET_FILE or TESSERA_SECRET"));
  CHECK_THROWS_WITH(Coordination::join(with(2, "")),
                    Contains(str("[coordination] rank 0 at 127.0.0.1:", port,
                                 " requires the secret of its job. Received: none here")));
  test::Ranks ranks(4);
  const auto errors = test::on_threads(4, [&](int rank) {
    auto& coordination = ranks[static_cast<size_t>(rank)];
    coordination = rank == 0 ? hub.get() : Coordination::join(with(rank, secret));
    CHECK(coordination->gather("key", str(rank)) == std::vector<std::string>{"0", "1", "2", "3"});
    coordination->leave();
  });
  CHECK(errors == std::vector<std::string>(4));
  REQUIRE_FALSE(lines.empty());
  CHECK(lines[0] ==
        "[coordination] refused rank 2 (pid 4711 on host) at 127.0.0.1: it has another secret");
}

TEST_CASE("rank 0 proves that it knows the secret too") {
  const int port = free_port();
  const FileDescriptor listener = listen_on("127.0.0.1", port);
  CoordinationOptions one = rank_options(1, 3, port);
  one.access.secret = std::string(32, 's');
  auto joins =
      std::async(std::launch::async, [&] { return error_of([&] { Coordination::join(one); }); });
  // Another program, which accepts every hello.
  FileDescriptor connection;
  while (!(connection = accept_from(listener)).valid()) std::this_thread::sleep_for(1ms);
  FrameSocket socket(std::move(connection));
  socket.send(FrameType::accepted);
  CHECK_THAT(joins.get(), Contains(str("[coordination] rank 0 at 127.0.0.1:", port,
                                       " must prove that it knows the secret of the job. "
                                       "Received: it has none")));
}

TEST_CASE("a run without a secret refuses a rank that has one, and goes on waiting") {
  const int port = free_port();
  std::mutex mutex;
  std::vector<std::string> lines;
  CoordinationOptions zero = rank_options(0, 2, port);
  zero.say = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  auto hub = join_later(zero);
  CoordinationOptions one = rank_options(1, 2, port);
  one.access.secret = std::string(32, 's');
  CHECK_THROWS_WITH(Coordination::join(one),
                    Contains(str("[coordination] this run has no secret, and rank 0 at 127.0.0.1:",
                                 port, " cannot prove one. Received: rank 1 (pid ")) &&
                        Contains(") with a secret. To fix: give all processes the same "
                                 "TESSERA_SECRET_FILE or TESSERA_SECRET, or none"));
  // The right rank 1 comes later.
  test::Ranks ranks{nullptr, Coordination::join(rank_options(1, 2, port))};
  ranks[0] = hub.get();
  const auto errors = test::on_threads(2, [&](int rank) {
    ranks[static_cast<size_t>(rank)]->gather("still", "there");
    ranks[static_cast<size_t>(rank)]->leave();
  });
  CHECK(errors == std::vector<std::string>(2));
  REQUIRE_FALSE(lines.empty());
  CHECK_THAT(lines[0], Contains("[coordination] refused rank 1 (pid ") &&
                           Contains(") at 127.0.0.1: it has a secret, this run has none"));
}

TEST_CASE("all ranks encrypt, or none, and only with a secret") {
  const int port = free_port();
  const auto with = [&](int rank, bool encrypts) {
    CoordinationOptions options = rank_options(rank, 2, port);
    options.access = {std::string(32, 's'), false, encrypts};
    return options;
  };
  auto hub = join_later(with(0, true));
  CHECK_THROWS_WITH(Coordination::join(with(1, false)),
                    Contains("[coordination] all processes of a run encrypt what they send, or "
                             "none does. Received: rank 1 (pid ") &&
                        Contains(") does not, rank 0 does. To fix: pass --encrypt"));
  test::Ranks ranks{nullptr, Coordination::join(with(1, true))};
  ranks[0] = hub.get();
  test::leave_all(ranks);
  CoordinationOptions open = with(0, true);
  open.access.secret = "";
  CHECK_THROWS_WITH(Coordination::join(open),
                    Contains("[coordination] encryption (--encrypt, TESSERA_ENCRYPT=1) needs the "
                             "job's secret. Received: no secret. To fix: write one to a file with "
                             "\"openssl rand -hex 32\"") &&
                        Contains("set TESSERA_SECRET_FILE, or start the processes with launch"));
}

TEST_CASE("a run beyond this host needs a secret, on every rank") {
  for (const int rank : {0, 1}) {
    CoordinationOptions options = rank_options(rank, 2, free_port());
    options.address = "192.0.2.1";
    CHECK_THROWS_WITH(
        Coordination::join(options),
        Contains("[coordination] rank 0 needs a secret to listen beyond this host, at "
                 "192.0.2.1"));
  }
  std::vector<std::string> lines;
  CoordinationOptions zero = rank_options(0, 2, free_port());
  zero.address = "0.0.0.0";
  zero.access.insecure = true;
  zero.connect_timeout = 100ms;
  zero.say = [&](const std::string& line) { lines.push_back(line); };
  CHECK_THROWS_WITH(Coordination::join(zero), Contains("no sign of rank 1"));
  CHECK(lines ==
        std::vector<std::string>{
            "Warning: [coordination] rank 0 listens beyond this host, at 0.0.0.0, without a "
            "secret: whoever reaches it may take part"});
}

TEST_CASE("options of a rank are checked before it connects") {
  CHECK_THROWS_AS(Coordination::join({.rank = 3, .size = 3, .port = 1, .say = {}}), ConfigError);
  CHECK_THROWS_AS(Coordination::join({.rank = -1, .size = 3, .port = 1, .say = {}}), ConfigError);
  CHECK_THROWS_WITH(Coordination::join({.rank = 1, .size = 2, .port = 70000, .say = {}}),
                    Contains("Received: 70000"));
}

TEST_CASE("a thousand unknown peers do no harm, before and after the start") {
  const int port = free_port();
  auto hub = join_later(rank_options(0, 2, port));
  wait_for(port);
  std::mt19937 random(1);
  std::vector<FileDescriptor> silent;
  const auto disturb = [&](int count) {
    std::string noise(200, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    const std::string hello = hello_frame({"", 2, {1, 1, "host", ""}});
    const std::vector<std::string> inputs = {"",
                                             noise,
                                             "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                             std::string("TSRC\xff\xff\xff\x7f\0", 9),
                                             hello.substr(0, hello.size() / 2),
                                             encode_frame(FrameType::goodbye, ""),
                                             encode_frame(FrameType::hello, "short"),
                                             std::string(100000, 'x')};
    for (int i = 0; i < count; ++i) {
      const std::string& input = inputs[static_cast<size_t>(i) % inputs.size()];
      FileDescriptor connection = connect_and_send(port, input);
      // Some stay connected and send nothing, or nothing more.
      if (i % 4 == 0 && silent.size() < 300) silent.push_back(std::move(connection));
    }
  };
  disturb(1000);
  const auto one = Coordination::join(rank_options(1, 2, port));
  const auto zero = hub.get();
  disturb(200);
  const auto errors = test::on_threads(2, [&](int rank) {
    (rank == 0 ? zero : one)->gather("key", "text");
    (rank == 0 ? zero : one)->leave();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(zero->reason() == "");
}

TEST_CASE("a rank that violates the protocol ends the run with a clear error") {
  const int port = free_port();
  auto hub = join_later(rank_options(0, 2, port));
  wait_for(port);
  const std::string hello = hello_frame({"", 2, {1, 4711, "host", ""}});
  const auto run_with = [&](const std::string& bytes) {
    const FileDescriptor connection = connect_and_send(port, hello);
    const auto coordination = hub.get();
    ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return error_of([&] { coordination->gather("key", ""); });
  };
  const std::string sent = "Received: rank 1 (pid 4711 on host) sent ";
  SECTION("noise") {
    CHECK_THAT(run_with("noise"), Contains(sent + "bytes that begin with \"nois\""));
  }
  SECTION("a length above the limit") {
    CHECK_THAT(run_with(std::string("TSRC\xff\xff\xff\x7f\0", 9)),
               Contains(sent + "a frame of 2147483647 bytes"));
  }
  SECTION("a body that ends too early") {
    CHECK_THAT(run_with(encode_frame(FrameType::gather, "x")),
               Contains(sent + "a frame that ends too early"));
  }
  SECTION("a text before the start") {
    const FileDescriptor connection =
        connect_and_send(port, hello + encode_frame(FrameType::gather, ""));
    CHECK_THAT(error_of([&] { hub.get()->gather("key", ""); }), Contains(sent + "a frame of type"));
  }
  SECTION("a frame of rank 0") {
    CHECK_THAT(run_with(encode_frame(FrameType::started, "")), Contains(sent + "a frame of type"));
  }
}

}  // namespace rendezvous_test
