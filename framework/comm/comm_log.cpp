#include <tessera/framework/comm/comm_log.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera {

using namespace detail;

std::string to_string(CommOp op) {
  switch (op) {
    case CommOp::all_reduce:
      return "all_reduce";
    case CommOp::all_gather:
      return "all_gather";
    case CommOp::reduce_scatter:
      return "reduce_scatter";
    case CommOp::all_to_all:
      return "all_to_all";
    case CommOp::exchange:
      return "exchange";
    case CommOp::collective_permute:
      return "collective_permute";
    case CommOp::transfer:
      return "transfer";
  }
  return "?";
}

double detail::received_bytes(CommOp op, double bytes, int64_t members) {
  if (members <= 1) return 0;
  if (op == CommOp::exchange || op == CommOp::collective_permute || op == CommOp::transfer) {
    return bytes;
  }
  const double share = static_cast<double>(members - 1) / static_cast<double>(members);
  return (op == CommOp::all_reduce ? 2 : 1) * share * bytes;
}

int64_t CommLog::count(CommOp op, const std::string& dims) const {
  int64_t n = 0;
  for (const CommEntry& entry : entries_) {
    n += entry.op == op && (dims.empty() || entry.dims == dims);
  }
  return n;
}

double CommLog::received() const {
  double sum = 0;
  for (const CommEntry& entry : entries_) sum += entry.received;
  return sum;
}

std::string CommLog::to_string() const {
  std::string text;
  for (const CommEntry& entry : entries_) {
    text += str(tessera::to_string(entry.op), " over ", entry.dims, " (", entry.members,
                " members), ", entry.bytes, " bytes\n");
  }
  return text;
}

void CommLog::add(CommEntry entry) {
  if (entry.place.empty()) entry.place = CommLabel::current();
  entries_.push_back(std::move(entry));
}

CommLabel::CommLabel(const std::string& label) : label_(thread_state().comm_label, &label) {}

const std::string& CommLabel::current() {
  static const std::string unlabeled;
  const std::string* const label = thread_state().comm_label;
  return label ? *label : unlabeled;
}

CommLogScope::CommLogScope(CommLog& log) : log_(thread_state().comm_log, &log) {}
CommLog* CommLogScope::current() { return thread_state().comm_log; }

}  // namespace tessera
