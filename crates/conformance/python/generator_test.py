"""Datasets whose elements functions return one by one, as iterators over several devices use them."""
import time
import unittest

import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

import serving

tf1 = tf.compat.v1


def generator(init, following, finalize):
    """A dataset of int64 scalars of these concrete functions."""
    return tf.raw_ops.GeneratorDataset(
        init_func_other_args=init.captured_inputs, next_func_other_args=following.captured_inputs,
        finalize_func_other_args=finalize.captured_inputs, init_func=init, next_func=following,
        finalize_func=finalize, output_types=[tf.int64], output_shapes=[[]])


def concrete(body, *types):
    function = tf.function(body, autograph=False)
    return function.get_concrete_function(*(tf.TensorSpec([], dtype) for dtype in types))


class GeneratorTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        servers = serving.cluster("flowgrid", {"worker": 2}, ["--cpu-devices", "2"])
        cls.targets = cls.enterClassContext(servers)["worker"]

    def read_in_turns(self, devices, count, **options):
        with tf.Graph().as_default():
            with tf.device(devices[0]):
                dataset = tf1.data.Dataset.range(count)
            several = multi_device_iterator_ops.MultiDeviceIterator(
                dataset, devices, source_device=devices[0], **options)
            elements = several.get_next()
            with tf1.Session(self.targets[0]) as session:
                for _ in range(2):
                    session.run(several.initializer)
                    rounds = [session.run(elements) for _ in range(count // len(devices))]
                    self.assertEqual(rounds, [[2 * i, 2 * i + 1] for i in range(count // 2)])
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        session.run(elements)

    def test_devices_of_a_task_read_in_turns(self):
        self.read_in_turns([f"/job:worker/replica:0/task:0/device:CPU:{index}" for index in range(2)], 8)

    def test_devices_read_in_turns_without_buffers(self):
        devices = [f"/job:worker/replica:0/task:0/device:CPU:{index}" for index in range(2)]
        self.read_in_turns(devices, 8, max_buffer_size=1, prefetch_buffer_size=0)

    def test_devices_of_two_tasks_read_in_turns(self):
        self.read_in_turns([f"/job:worker/replica:0/task:{index}/device:CPU:0" for index in range(2)], 8)

    def test_an_iterator_that_is_replaced_is_finalized(self):
        with tf.Graph().as_default():
            closed = tf1.get_variable("closed", shape=[], dtype=tf.int64, use_resource=True,
                                      initializer=tf1.zeros_initializer())
            init = concrete(lambda: tf.constant(5, tf.int64))
            following = concrete(lambda state: state + 1, tf.int64)
            finalize = concrete(lambda state: closed.assign_add(state), tf.int64)
            iterator = tf.raw_ops.IteratorV2(
                shared_name="", container="", output_types=[tf.int64], output_shapes=[[]])
            begin = tf.raw_ops.MakeIterator(dataset=generator(init, following, finalize), iterator=iterator)
            element = tf.raw_ops.IteratorGetNext(iterator=iterator, output_types=[tf.int64], output_shapes=[[]])
            with tf1.Session(self.targets[0]) as session:
                session.run(closed.initializer)
                session.run(begin)
                session.run(begin)  # the first one was not read: nothing to finalize
                self.assertEqual(session.run(element), [6])
                session.run(begin)
                late = time.time() + 20
                while session.run(closed) == 0 and time.time() < late:
                    time.sleep(0.01)
                self.assertEqual(session.run(closed), 5)

    def test_a_function_of_the_client_is_an_error(self):
        with tf.Graph().as_default():
            dataset = tf1.data.Dataset.from_generator(lambda: iter([1, 2]), tf.int64, ())
            iterator = tf1.data.make_initializable_iterator(dataset)
            element = iterator.get_next()
            with tf1.Session(self.targets[0]) as session:
                session.run(iterator.initializer)
                with self.assertRaisesRegex(tf.errors.UnimplementedError, "only in the process of the client"):
                    session.run(element)


if __name__ == "__main__":
    unittest.main()
