"""The Python twin of `flowgrid demo`: the same digits, model and seeds, trained by TensorFlow.

    python crates/cli/demo.py --steps 500 --losses python.txt [--target grpc://127.0.0.1:2222]
"""
import argparse

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, TRAINING, HELD_OUT, HIDDEN, HEAD = 12, 4000, 1000, 64, 4
GLYPHS = """
.###. #...# #..## #.#.# ##..# #...# .###.
..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.
.###. #...# ....# ...#. ..#.. .#... #####
##### ...#. ..#.. ...#. ....# #...# .###.
...#. ..##. .#.#. #..#. ##### ...#. ...#.
##### #.... ####. ....# ....# #...# .###.
..##. .#... #.... ####. #...# #...# .###.
##### ....# ...#. ..#.. .#... .#... .#...
.###. #...# #...# .###. #...# #...# .###.
.###. #...# #...# .#### ....# ...#. .##..
"""
GLYPHS = np.array([[[c == "#" for c in row] for row in line.split()] for line in GLYPHS.split("\n") if line])


def mix(counter):
    z = (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Digits:
    def __init__(self, seed):
        self.seed = mix(np.array([seed], np.uint64))

    def draw(self, stream, place):
        return mix(self.seed + np.asarray(stream, np.uint64) * np.uint64(1024) + np.asarray(place, np.uint64))

    def unit(self, stream, place):
        return (self.draw(stream, place) >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)

    def batch(self, step, size, count):
        stream = np.array([2**64 - 1 - step], np.uint64)
        return (self.draw(stream, np.arange(size)) % np.uint64(count)).astype(np.int64)

    def examples(self, numbers):
        numbers = np.asarray(numbers, np.uint64)
        labels = (self.draw(numbers, 0) % np.uint64(10)).astype(np.int32)
        left = 3 + (self.draw(numbers, 1) % np.uint64(3)).astype(int)
        top = 2 + (self.draw(numbers, 2) % np.uint64(2)).astype(int)
        ink = np.float32(0.5) + np.float32(0.5) * self.unit(numbers, 3)
        places = HEAD + np.arange(SIDE * SIDE, dtype=np.uint64)
        images = np.float32(0.6) * self.unit(numbers[:, None], places[None, :])
        images = images.reshape(-1, SIDE, SIDE)
        for image, label, x, y, shade in zip(images, labels, left, top, ink):
            window = image[y : y + 7, x : x + 5]
            window[GLYPHS[label]] = shade + window[GLYPHS[label]]
        return images.reshape(-1, SIDE * SIDE), labels


def dense(name, inputs, units, seed):
    with tf.variable_scope(name):
        width = inputs.shape[1]
        kernel = tf.get_variable("kernel", [width, units], initializer=tf.glorot_uniform_initializer(seed=seed))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.005)
    parser.add_argument("--target", default="")
    parser.add_argument("--losses")
    args = parser.parse_args()

    tf.disable_eager_execution()
    digits = Digits(args.seed)
    images = tf.placeholder(tf.float32, [None, SIDE * SIDE])
    labels = tf.placeholder(tf.int32, [None])
    hidden = tf.nn.relu(dense("hidden", images, HIDDEN, args.seed))
    logits = dense("logits", hidden, 10, args.seed + 1)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), labels), tf.float32))
    train = tf.train.AdamOptimizer(args.learning_rate).minimize(loss)

    with tf.Session(args.target) as session:
        session.run(tf.global_variables_initializer())
        losses = []
        for step in range(args.steps):
            batch, wanted = digits.examples(digits.batch(step, args.batch, TRAINING))
            losses.append(session.run((loss, train), {images: batch, labels: wanted})[0])
        if args.losses:
            with open(args.losses, "w") as file:
                file.writelines(f"{value!r}\n" for value in map(float, losses))
        batch, wanted = digits.examples(np.arange(TRAINING, TRAINING + HELD_OUT))
        final, share = session.run((loss, accuracy), {images: batch, labels: wanted})
        print(f"{args.steps} steps; on {HELD_OUT} test digits: loss {final:.4f}, accuracy {share * 100:.1f} %")


if __name__ == "__main__":
    main()
