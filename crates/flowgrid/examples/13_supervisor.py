"""The twin of 13_supervisor.rs."""
import shutil
import tempfile

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

folder = tempfile.mkdtemp()
number = tf1.train.range_input_producer(100, num_epochs=1, shuffle=False, capacity=8).dequeue()
total = tf1.get_variable("total", [], tf.int32, tf1.zeros_initializer(), trainable=False)
step = tf1.train.create_global_step()
with tf.control_dependencies([total.assign_add(number)]):
    train = step.assign_add(1)

supervisor = tf1.train.Supervisor(logdir=folder)
seen = []
with supervisor.managed_session() as session:
    supervisor.loop(0.01, lambda: seen.append(session.run(step)))
    while not supervisor.should_stop():
        try:
            session.run(train)
        except tf.errors.OutOfRangeError:
            steps, sum_ = session.run([step, total])
            print(f"{steps} steps, a total of {sum_}")
            raise
assert all(0 <= step <= 100 for step in seen)
shutil.rmtree(folder)
