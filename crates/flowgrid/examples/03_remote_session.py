"""The twin of 03_remote_session.rs, in TensorFlow. Give a target to use a server that runs already."""
import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
if len(sys.argv) > 1:
    target = sys.argv[1]
else:
    server = tf.train.Server(tf.train.ClusterSpec({"worker": ["127.0.0.1:0"]}), job_name="worker", task_index=0)
    target = server.target

counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
advance = counter.assign_add(1.0)
with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    session.run(advance.op)
    with tf.Session(target) as other:
        other.run(advance.op)
        count = session.run(counter)
        print(target, "counted to", count)
        assert count == 2.0
        for device in session.list_devices():
            print(device.name)
