#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether a tensor has nothing infinite and only numbers.
bool all_finite(const at::Tensor& tensor);

/// Flat memory that is taken again once nobody else holds it.
class BufferPool {
 public:
  at::Tensor take(int64_t numel, at::TensorOptions options);

 private:
  std::vector<at::Tensor> kept_;
};

/// Several pending values of one mesh finished by one asynchronous all-reduce in each group, with
/// the bits and blocks that relayout_value() to their resolved layouts gives. Values fit together
/// if dtype, pending dimensions and block structure are the same; that, and the order of calls, are
/// the same on every process. Adds nothing to a CommLog: a bucket is not what is logged.
class Bucket {
 public:
  explicit Bucket(BufferPool& pool) : pool_(&pool) {}

  /// Whether the value is pending over more than one device and fits those that are here.
  bool fits(const DTensor& value) const;
  /// Keeps the value, which must fit, until finish().
  void add(const DTensor& value);
  const std::vector<DTensor>& values() const { return values_; }
  /// Bytes each device has to have reduced.
  double bytes() const { return bytes_; }

  /// Adds up the addends of this process and begins to reduce them with the others'. Collective.
  void start();
  /// Whether wait() would not block.
  bool done() const;
  /// Blocks until what was started is done. Throws CommError.
  void wait();
  /// Waits; afterwards every value added is resolved, in all its handles, and the bucket empty.
  void finish();
  /// This process's addends, each with the number of its value, between start() and finish().
  std::vector<std::pair<size_t, at::Tensor>> addends() const;
  /// The first value with an addend of this process that is infinite or no number, between start()
  /// and finish(); of CPUs. One pass over the bucket's memory, made by start(), if there is none.
  std::optional<size_t> find_non_finite() const;

 private:
  /// What the values of one bucket share.
  struct Key {
    Mesh mesh;
    DimMask dims = 0;
    Reduce kind = Reduce::sum;
    at::ScalarType dtype = at::kFloat, wide = at::kFloat;
    Groups groups;
    bool operator==(const Key&) const = default;
  };
  /// The values at one coordinate of the other dimensions, side by side.
  struct Flat {
    std::vector<int> members = {};  ///< blocks, in their order along the pending dimensions
    at::Tensor addends = {};        ///< this process's, added up
    at::Tensor check = {};          ///< their sum, on CPUs: finite if all of them are
    at::Tensor result = {};
    WorkPtr work = {};
    int64_t given = 0;  ///< elements of the result that have their place
  };
  using Coordinates = std::vector<int64_t>;

  static Key key_of(const DTensor& value);
  Coordinates coordinates_of(const BlockInfo& block) const;
  void find_places();
  void announce_collective() const;
  void fill(Flat& flat) const;
  DTensor resolved(const DTensor& cut);

  BufferPool* pool_;
  Key key_;
  std::vector<DTensor> values_;
  std::vector<DTensor> cut_;  ///< the values in blocks that the key names
  double bytes_ = 0;
  std::map<Coordinates, Flat> flats_;
};

}  // namespace tessera::detail
