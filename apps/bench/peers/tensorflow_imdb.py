"""The step of the DTensor tutorial's model (1200-48-2 with batch norm, batch 64, SGD on the summed
loss) in TensorFlow's DTensor, on 8 virtual devices in one of the tutorial's schemes."""
import sys

from dtensor import UNSHARDED, dtensor, glorot, make_mesh, pack, tf, zeros
from lines import answer_steps, batch, read

x, y = read(sys.argv[1], 1200)
# Mesh, and shardings of rows, first kernel and second kernel.
dims, rows_cut, kernel1, kernel2 = {
    "data": ([("batch", 8)], ["batch", UNSHARDED], [UNSHARDED] * 2, [UNSHARDED] * 2),
    "model": ([("batch", 4), ("model", 2)], ["batch", UNSHARDED], [UNSHARDED, "model"],
              ["model", UNSHARDED]),
    "spatial": ([("batch", 2), ("feature", 2), ("model", 2)], ["batch", "feature"],
                ["feature", "model"], ["model", UNSHARDED]),
}[sys.argv[2]]
mesh = make_mesh(dims)
rows_cut, kernel1, kernel2 = (dtensor.Layout(cut, mesh) for cut in (rows_cut, kernel1, kernel2))
labels_cut = dtensor.Layout(["batch"], mesh)
weights = [glorot(kernel1, (1200, 48), 1), zeros(kernel1.delete([0]), (48,)),
           glorot(kernel2, (48, 2), 3), zeros(kernel2.delete([0]), (2,))]


def logits_of(rows):
    h = tf.nn.relu(tf.matmul(rows, weights[0]) + weights[1])
    mean = tf.reduce_mean(h, axis=0)
    variance = tf.reduce_mean((h - mean) ** 2, axis=0)
    return tf.matmul((h - mean) * tf.math.rsqrt(variance + 1e-5), weights[2]) + weights[3]


@tf.function
def train(rows, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits_of(rows)))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-2 * gradient)
    return loss


def step(i):
    rows, labels = batch(i, 64, x, y)
    train(pack(rows, rows_cut), pack(labels, labels_cut)).numpy()


answer_steps(step)
