#pragma once

#include <c10/core/Device.h>

namespace tessera::test::fake_gpu {

/// Returns n of TESSERA_FAKE_GPUS=n; 0 if it is not set.
c10::DeviceIndex device_count();
/// Throws c10::Error if the GPU does not exist.
void check_index(c10::DeviceIndex index);

/// Returns the GPU of this thread's new tensors and streams.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

}  // namespace tessera::test::fake_gpu
