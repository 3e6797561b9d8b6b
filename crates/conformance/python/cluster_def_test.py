"""Clusters from the client: servers that were started separately, and know each other only through its sessions."""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
errors = tf.errors

OURS, THEIRS = "flowgrid", "tensorflow"
CPU = "/replica:0/task:0/device:CPU:0"


def alone(kind, job="boot"):
    """A server in a cluster of its own: how to start it, and its address."""
    address = "127.0.0.1:%d" % serving.free_ports(1)[0]
    return serving.command(kind, {job: [address]}, job, 0), address


class ClusterDefTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        servers = [alone(kind) for kind in (OURS, OURS, OURS, THEIRS)]
        for command, _ in servers:
            cls.enterClassContext(serving.process(command))
        cls.a, cls.b, cls.c, cls.theirs = [address for _, address in servers]

    def setUp(self):
        self.enterContext(tf.Graph().as_default())

    def config(self, jobs, share=False, **options):
        config = tf1.ConfigProto(cluster_def=tf1.train.ClusterSpec(jobs).as_cluster_def(),
                                 operation_timeout_in_ms=20000, **options)
        config.experimental.share_session_state_in_clusterspec_propagation = share
        return config

    def session(self, master, config):
        return self.enterContext(tf1.Session("grpc://" + master, config=config))

    def variable(self, ps="/job:ps/task:0"):
        """A variable on the ps, and its double on the worker."""
        with tf1.device(ps):
            v = tf1.Variable(3.0, name="v", use_resource=False)
        with tf1.device("/job:worker/task:0"):
            return v, v * 2

    def refused(self, master, jobs, text):
        with self.assertRaisesRegex(errors.InvalidArgumentError, text):
            self.session(master, self.config(jobs)).run(tf.constant(1))

    def test_servers_get_their_names_from_the_session(self):
        for master, ps in ((self.a, self.b), (self.a, self.theirs), (self.theirs, self.a)):
            with self.subTest(master=master, ps=ps), tf.Graph().as_default():
                v, doubled = self.variable()
                session = self.session(master, self.config({"worker": [master], "ps": [ps]}))
                self.assertEqual(sorted(device.name for device in session.list_devices()),
                                 ["/job:ps" + CPU, "/job:worker" + CPU])
                session.run(v.initializer)
                self.assertEqual(session.run(doubled), 6)
                with self.assertRaisesRegex(errors.FailedPreconditionError, "From /job:ps/replica:0/task:0"):
                    self.session(master, self.config({"worker": [master], "ps": [ps]})).run(v)

    def test_the_same_servers_have_other_names_in_another_session(self):
        v, doubled = self.variable("/job:ps/task:3")
        first = self.session(self.a, self.config({"worker": [self.a], "ps": {3: self.b}}))
        second = self.session(self.b, self.config({"worker": [self.b], "ps": {3: self.a, 5: self.c}}))
        for session in (first, second):
            session.run(v.initializer)
            self.assertEqual(session.run(doubled), 6)
        with tf1.Session("grpc://" + self.a) as session:
            self.assertEqual([device.name for device in session.list_devices()], ["/job:boot" + CPU])

    def test_state_is_shared_if_the_session_wants_it(self):
        for number, (master, ps) in enumerate([(self.a, self.b), (self.a, self.theirs), (self.theirs, self.a)]):
            with self.subTest(master=master, ps=ps), tf.Graph().as_default(), tf1.container(f"shared{number}"):
                v, doubled = self.variable()
                config = self.config({"worker": [master], "ps": [ps]}, share=True, isolate_session_state=True)
                self.session(master, config).run(v.initializer)
                self.assertEqual(self.session(master, config).run(doubled), 6)

    def test_a_task_that_the_filters_leave_out_need_not_be_there(self):
        v, doubled = self.variable()
        unused = "127.0.0.1:%d" % serving.free_ports(1)[0]
        jobs = {"worker": [self.a], "ps": [self.b], "other": [unused]}
        session = self.session(self.a, self.config(jobs, device_filters=["/job:ps", "/job:worker"]))
        session.run(v.initializer)
        self.assertEqual(session.run(doubled), 6)

    def test_a_master_that_is_not_in_the_cluster(self):
        self.refused(self.a, {"worker": [self.c], "ps": [self.b]},
                     "The master .current machine. is not included in the provided cluster_def")

    def test_a_master_that_is_in_the_cluster_twice(self):
        self.refused(self.a, {"worker": [self.a], "ps": [self.a]},
                     "Found multiple matching tasks that correspond to to the master")

    def test_a_master_under_the_name_it_was_started_with(self):
        text = "names the job and task index to be the same names .* when the server booted.* Job: boot, task index: 0"
        self.refused(self.a, {"boot": [self.a], "ps": [self.b]}, text)
        self.refused(self.a, {"boot": [self.a]}, text)


if __name__ == "__main__":
    unittest.main()
