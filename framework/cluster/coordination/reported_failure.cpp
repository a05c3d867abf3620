#include <tessera/framework/cluster/coordination/reported_failure.hpp>

#include <mutex>
#include <utility>

namespace tessera::detail {
namespace {

struct Note {
  std::mutex mutex;
  std::function<void(const std::string&)> tell;
};

Note& the_note() {
  static Note note;
  return note;
}

}  // namespace

void report_failure(const std::string& what) {
  Note& note = the_note();
  const std::lock_guard<std::mutex> lock(note.mutex);
  if (note.tell) note.tell(what);
}

void set_failure_reporter(std::function<void(const std::string& what)> tell) {
  Note& note = the_note();
  const std::lock_guard<std::mutex> lock(note.mutex);
  note.tell = std::move(tell);
}

}  // namespace tessera::detail
