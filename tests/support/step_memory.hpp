#pragma once

#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::test {

using detail::default_bucket_cap_mb;

/// Returns a model of Dense layers of 256 units, built for 64 rows.
Sequential wide_layers(int64_t depth, const LayoutMap& layouts,
                       double bucket_cap_mb = default_bucket_cap_mb);

/// Returns a batch for it.
Examples wide_batch();

/// The bytes that a device holds at the peak of a training step, as planned and as measured.
struct DevicePeak {
  StepPlan::Peak planned;
  MemoryByUse measured;
};

/// Plans a training step of six such layers, and measures one that is replayed; returns the peaks
/// of this process's devices. Collective.
std::vector<DevicePeak> step_peaks(const LayoutMap& layouts,
                                   double bucket_cap_mb = default_bucket_cap_mb);

}  // namespace tessera::test
