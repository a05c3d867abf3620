"""Shared code of the programs on TensorFlow's DTensor: virtual CPUs, batches, weights."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

from lines import quiet

with quiet():
    import tensorflow as tf
    from tensorflow.experimental import dtensor

UNSHARDED = dtensor.UNSHARDED


def make_mesh(dims):
    """A mesh of virtual CPUs from (name, size) pairs."""
    count = int(np.prod([size for _, size in dims]))
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(count)])
    return dtensor.create_mesh(dims, devices=[f"CPU:{i}" for i in range(count)])


def pack(array, layout):
    """Returns the array, sharded by the layout."""
    mesh = layout.mesh
    shards = []
    for device in range(mesh.size):
        place = dict(zip(mesh.dim_names, np.unravel_index(device, mesh.shape())))
        index = []
        for axis, dim in enumerate(layout.sharding_specs):
            size = array.shape[axis] // layout.num_shards(axis)
            begin = place[dim] * size if dim != UNSHARDED else 0
            index.append(slice(begin, begin + size))
        shards.append(array[tuple(index)])
    return dtensor.pack(shards, layout)


def zeros(layout, shape):
    return dtensor.DVariable(dtensor.call_with_layout(tf.zeros, layout, shape))


def glorot(layout, shape, seed):
    """Draws on all devices, then shards: drawing into a sharded layout is not supported."""
    limit = (6 / sum(shape)) ** 0.5
    whole = dtensor.Layout.replicated(layout.mesh, rank=2)
    drawn = dtensor.call_with_layout(tf.random.stateless_uniform, whole, shape, (seed, 1), -limit,
                                     limit)
    return dtensor.DVariable(dtensor.relayout(drawn, layout))
