"""The twin of 10_checkpoints.rs."""
import os
import shutil
import tempfile

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

folder = tempfile.mkdtemp()
path = os.path.join(folder, "model")

w = tf1.get_variable("w", initializer=tf.constant([1., 2.]))
doubled = tf1.assign(w, w * 2)
tf.identity(tf.reduce_sum(w), name="answer")
saver = tf1.train.Saver()

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(1, 8):
        session.run(doubled)
        saver.save(session, path, step)
    saver.restore(session, f"{path}-3")
    print("after step 3:", session.run(w))

newest = tf.train.latest_checkpoint(folder)
with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.import_meta_graph(f"{newest}.meta").restore(session, newest)
    print("the newest gives", session.run("answer:0"))
shutil.rmtree(folder)
