#pragma once

#include <c10/core/Device.h>

namespace tessera::test::fake_gpu {

/// The n of TESSERA_FAKE_GPUS=n; 0 where it is not set.
c10::DeviceIndex device_count();
/// Throws c10::Error for a GPU that is not there.
void check_index(c10::DeviceIndex index);

/// The GPU that this thread's new tensors and streams are of.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex index);

}  // namespace tessera::test::fake_gpu
