#include <tessera/framework/comm/internal/flight_recorder.hpp>

#include <algorithm>
#include <functional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera::detail {
namespace {

uint64_t mix_text(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return mix(hash, text.size());
}

}  // namespace

FlightRecorder::Call& FlightRecorder::append(const CollectiveCall& call,
                                             const std::vector<int>& ranks, int64_t step) {
  Call& entry = calls_[++count_ % calls_.size()];
  entry.op = call.op;
  entry.kind = call.kind;
  entry.dtype = call.dtype;
  entry.axis = call.axis;
  entry.to_axis = call.to_axis;
  entry.step = step;
  entry.inside = false;
  entry.works.clear();
  entry.dims = call.mesh.names(call.dims);
  entry.label = CommLabel::current();
  entry.shape = call.shape;
  entry.ranks = ranks;
  entry.after = collectives_of_all_;
  uint64_t hash = mix(static_cast<uint64_t>(call.op), static_cast<uint64_t>(call.kind));
  hash = mix(hash, static_cast<uint64_t>(call.dtype));
  hash = mix(mix(hash, static_cast<uint64_t>(call.axis)), static_cast<uint64_t>(call.to_axis));
  for (int64_t extent : call.shape) hash = mix(hash, static_cast<uint64_t>(extent));
  hash = mix_text(hash, entry.dims);
  for (int rank : ranks) hash = mix(hash, static_cast<uint64_t>(rank));
  entry.hash = mix_text(hash, entry.label);
  return entry;
}

FlightRecorder::Added FlightRecorder::add(const CollectiveCall& call, const std::vector<int>& ranks,
                                          int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Call& entry = append(call, ranks, step);
  if (ranks.empty()) {
    entry.number = ++collectives_of_all_;
    hash_ = mix(hash_, entry.hash);
  } else {
    entry.number = ++numbers_[ranks];
  }
  entry.others = count_ - collectives_of_all_;
  return {count_, entry.number, entry.hash};
}

FlightRecorder::Added FlightRecorder::add_transfer(const CollectiveCall& call,
                                                   const std::vector<int>& ranks, int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Call& entry = append(call, ranks, step);
  entry.hash = 0;
  entry.number = ++transfers_;
  entry.others = count_ - collectives_of_all_;
  return {count_, entry.number, entry.hash};
}

FlightRecorder::Call* FlightRecorder::find(uint64_t call) {
  return call + calls_.size() > count_ ? &calls_[call % calls_.size()] : nullptr;
}

void FlightRecorder::set_inside(uint64_t call, bool inside) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Call* entry = find(call)) entry->inside = inside;
}

void FlightRecorder::add_work(uint64_t call, const WorkPtr& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Call* entry = find(call)) entry->works.push_back(work);
}

bool FlightRecorder::done(const Call& call) {
  return !call.inside &&
         std::all_of(call.works.begin(), call.works.end(), [](const auto& weak_work) {
           const WorkPtr work = weak_work.lock();
           return !work || work->done();
         });
}

std::string FlightRecorder::text(const Call& call) {
  std::string text = to_string(call.op);
  const bool reduces = call.op == CommOp::all_reduce || call.op == CommOp::reduce_scatter;
  if (reduces) text += " " + to_string(call.kind);
  text += str(" of ", call.label.empty() ? "" : call.label + ", ", dtype_name(call.dtype), " ",
              to_string(call.shape));
  const bool moves = call.op == CommOp::transfer;
  if (call.op != CommOp::all_reduce && !moves) text += str(", axis ", call.axis);
  if (call.op == CommOp::all_to_all) text += str(" to ", call.to_axis);
  text += (moves ? ", along " : ", on ") + call.dims;
  return call.ranks.empty() ? text : str(text, ", between ", rank_names(call.ranks));
}

CallRecord FlightRecorder::record_locked(uint64_t call) const {
  if (count_ == 0) return {};
  if (call == 0 || call > count_ || call + calls_.size() <= count_) call = count_;
  const Call& entry = calls_[call % calls_.size()];
  return {entry.number, entry.hash,  entry.step,  text(entry),
          done(entry),  entry.ranks, entry.after, entry.others};
}

CallRecord FlightRecorder::record(uint64_t call) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return record_locked(call);
}

std::vector<CallRecord> FlightRecorder::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CallRecord> list;
  const uint64_t retained = std::min<uint64_t>(count_, calls_.size());
  for (uint64_t call = count_ - retained + 1; call <= count_; ++call) {
    list.push_back(record_locked(call));
  }
  return list;
}

uint64_t FlightRecorder::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

uint64_t FlightRecorder::hash() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hash_;
}

}  // namespace tessera::detail
