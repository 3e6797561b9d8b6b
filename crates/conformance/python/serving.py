"""Starts Flowgrid's and TensorFlow's servers for a test, and always stops them."""
import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys

TF_SERVER = """
import json, sys
import tensorflow as tf
cluster, job, task = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
server = tf.compat.v1.train.Server(cluster, job_name=job, task_index=task)
print("ready", flush=True)
server.join()
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def command(kind, cluster, job, task, flags=()):
    if kind == "tensorflow":
        return [sys.executable, "-c", TF_SERVER, json.dumps(cluster), job, str(task)]
    program = os.environ.get("FLOWGRID_BIN")
    if not program:
        raise RuntimeError("FLOWGRID_BIN is not set: run these tests with `cargo xtask test`")
    return [program, "server", "--cluster-json", json.dumps(cluster), "--job", job, "--task", str(task),
            *flags]


def wait_ready(process, seconds=120):
    """Waits for the line that a server prints when it listens; returns it."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            raise RuntimeError(f"{process.args} was not ready within {seconds} s")
    line = process.stdout.readline()
    if "ready" not in line:
        raise RuntimeError(f"{process.args} ended instead of getting ready: {line!r}")
    return line


@contextlib.contextmanager
def process(command):
    """Runs a server while the context is active."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        wait_ready(running)
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


class Targets(dict):
    """The targets of a cluster, {job: [target]}, and its processes."""
    processes = ()


class Tasks:
    """Running tasks of one kind that a test can kill and restart."""

    def __init__(self, kind, size, flags=None):
        ports = iter(free_ports(sum(size.values())))
        self.kind, self.flags = kind, flags or {}
        self.spec = {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in size.items()}
        self.running = {}

    def target(self, job, task):
        return f"grpc://{self.spec[job][task]}"

    def start(self, job, task):
        own = command(self.kind, self.spec, job, task, self.flags.get(job, ()))
        self.running[job, task] = subprocess.Popen(own, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def kill(self, job, task):
        process = self.running.pop((job, task))
        process.kill()
        process.wait()
        process.stdout.close()

    def restart(self, job, task):
        self.kill(job, task)
        self.start(job, task)
        wait_ready(self.running[job, task])


@contextlib.contextmanager
def tasks(kind, size, flags=None):
    """Running tasks that a test can kill and restart; Flowgrid's get the flags of their job."""
    all_tasks = Tasks(kind, size, flags)
    try:
        for job, hosts in all_tasks.spec.items():
            for task in range(len(hosts)):
                all_tasks.start(job, task)
        for process in all_tasks.running.values():
            wait_ready(process)
        yield all_tasks
    finally:
        for job, task in list(all_tasks.running):
            all_tasks.kill(job, task)


@contextlib.contextmanager
def cluster(kinds, size, flags=(), environment=None, log=None):
    """A running cluster: `kinds` is one kind for all, or {(job, task): kind}; yields its Targets. Flowgrid's servers
    get the flags, all servers the environment, and their standard error goes to the log."""
    ports = iter(free_ports(sum(size.values())))
    spec = {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in size.items()}
    running = []
    try:
        for job, hosts in spec.items():
            for task in range(len(hosts)):
                kind = kinds if isinstance(kinds, str) else kinds[job, task]
                running.append(subprocess.Popen(command(kind, spec, job, task, flags), stdout=subprocess.PIPE,
                                                stdin=subprocess.DEVNULL, stderr=log, env=environment, text=True))
        for process in running:
            wait_ready(process)
        targets = Targets({job: [f"grpc://{host}" for host in hosts] for job, hosts in spec.items()})
        targets.processes = running
        yield targets
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()
            process.stdout.close()


def server(kind):
    """One task of job `worker`."""
    return cluster(kind, {"worker": 1})
