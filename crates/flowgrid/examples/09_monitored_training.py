"""The twin of 09_monitored_training.rs."""
import shutil
import tempfile

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def learn(folder, steps):
    with tf.Graph().as_default():
        x, y = tf.constant([[0.], [1.], [2.], [3.]]), tf.constant([[1.], [3.], [5.], [7.]])
        w = tf1.get_variable("w", [1, 1], initializer=tf1.zeros_initializer())
        b = tf1.get_variable("b", [1], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        hooks = [tf1.train.StopAtStepHook(num_steps=steps), tf1.train.NanTensorHook(loss),
                 tf1.train.LoggingTensorHook({"loss": loss}, every_n_iter=50)]
        with tf1.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=50,
                                                hooks=hooks) as session:
            while not session.should_stop():
                _, slope = session.run([train, w])
        return slope[0, 0]


folder = tempfile.mkdtemp()
print(f"after 100 steps the slope is {learn(folder, 100):.3f}")
print(f"after 200 steps the slope is {learn(folder, 100):.3f}")
assert tf.train.latest_checkpoint(folder).endswith("model.ckpt-200")
shutil.rmtree(folder)
