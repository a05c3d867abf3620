"""The step of the MLP (784-700-500-10, batch 128, Adam) in TensorFlow's DTensor on N virtual
devices, as in the Core-API guide: the batch sharded, the weights replicated."""
import sys

from dtensor import UNSHARDED, dtensor, glorot, make_mesh, pack, tf, zeros
from lines import answer_steps, batch, read

x, y = read(sys.argv[1], 784)
mesh = make_mesh([("batch", int(sys.argv[2]))])
matrix, vector = (dtensor.Layout.replicated(mesh, rank=rank) for rank in (2, 1))
images_cut = dtensor.Layout(["batch", UNSHARDED], mesh)
labels_cut = dtensor.Layout(["batch"], mesh)

sizes = (784, 700, 500, 10)
weights = []
for i, (inputs, units) in enumerate(zip(sizes, sizes[1:])):
    weights += [glorot(matrix, (inputs, units), i), zeros(vector, (units,))]
momenta, velocities = ([zeros(w.layout, w.shape) for w in weights] for _ in range(2))
count = dtensor.DVariable(dtensor.call_with_layout(
    tf.zeros, dtensor.Layout.replicated(mesh, rank=0), ()))


def logits_of(h):
    for i in range(0, len(weights), 2):
        h = tf.matmul(h, weights[i]) + weights[i + 1]
        if i + 2 < len(weights):
            h = tf.nn.relu(h)
    return h


def apply(gradients):
    count.assign_add(1.0)
    correction1, correction2 = 1 - 0.9 ** count, 1 - 0.999 ** count
    for w, g, m, v in zip(weights, gradients, momenta, velocities):
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * g * g)
        mean, square = m / correction1, v / correction2
        w.assign_sub(1e-3 * mean / (tf.sqrt(square) + 1e-7))


@tf.function
def train(images, labels):
    with tf.GradientTape() as tape:
        logits = logits_of(images)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    apply(tape.gradient(loss, weights))
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    return loss, right


def step(i):
    images, labels = batch(i, 128, x, y)
    loss, _ = train(pack(images, images_cut), pack(labels, labels_cut))
    loss.numpy()


answer_steps(step)
