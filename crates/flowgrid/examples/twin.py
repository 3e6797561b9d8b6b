"""What the twins share: a cluster of TensorFlow's own servers in this process."""
import socket

import tensorflow.compat.v1 as tf

_servers = []


def local_cluster(**jobs):
    """Starts a cluster with this number of tasks in each job, and returns their targets."""
    held = {job: [socket.create_server(("127.0.0.1", 0)) for _ in range(count)] for job, count in jobs.items()}
    spec = {job: ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets] for job, sockets in held.items()}
    for sockets in held.values():
        for s in sockets:
            s.close()
    for job, hosts in spec.items():
        _servers.extend(tf.train.Server(spec, job_name=job, task_index=task) for task in range(len(hosts)))
    return {job: ["grpc://" + host for host in hosts] for job, hosts in spec.items()}
