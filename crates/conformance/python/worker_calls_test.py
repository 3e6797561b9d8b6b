"""Calls between workers that Flowgrid's steps do not make: the server answers them as TensorFlow's does."""
import re
import threading
import unittest

import grpc
from tensorflow.core.framework import device_attributes_pb2

import serving
from bad_input_test import field, varint

DEVICE = b"/job:worker/replica:0/task:0/device:CPU:0"
KEY = b"1:2:0:0:0:0:1"


def number(tag, value):
    return varint(tag << 3) + varint(value)


def recv_buf(step, incarnation, device=DEVICE, request_id=0):
    return (number(1, step) + field(2, KEY) + number(3, 8) + field(8, device) + field(9, DEVICE)
            + number(10, request_id) + number(11, incarnation))


class Caller:
    """A peer of a worker."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target.removeprefix("grpc://"))
        device = self.channel.unary_unary("/tensorflow.WorkerService/GetStatus")(b"", timeout=30)
        # One device, whose message is shorter than 128 bytes, in field 1.
        self.incarnation = device_attributes_pb2.DeviceAttributes.FromString(device[2:2 + device[1]]).incarnation

    def start(self, method, request):
        return self.channel.unary_unary(f"/tensorflow.WorkerService/{method}").future(request, timeout=30)

    def answer(self, call):
        """The code of an error, and its text without the incarnation of the device and without the request."""
        text = (call.details() or "").replace(str(self.incarnation), "INCARNATION")
        return call.code().name, re.sub(r"\s*(goo\.gle/|step_id:).*", "", text)

    def call(self, method, request):
        return self.answer(self.start(method, request))


def answers(caller):
    """The answers of a worker to the calls, by name."""
    own, found = caller.incarnation, {}
    for method in ("Tracing", "Logging", "MarkRecvFinished"):
        found[method] = caller.call(method, b"")
    found["logging on"] = caller.call("Logging", number(1, 1))
    found["logs of an unknown step"] = caller.call("Logging", number(3, 77))
    found["another life"] = caller.call("RecvBuf", recv_buf(1, 5))
    found["another task"] = caller.call("RecvBuf", recv_buf(1, own, DEVICE.replace(b"task:0", b"task:1")))
    # Of two requests for one buffer the second is refused, and the first waits until the step ends.
    for word, request_id in (("the same request", 6), ("a second consumer", 0)):
        request = recv_buf(2 + request_id, own, request_id=request_id)
        pair = [caller.start("RecvBuf", request), caller.start("RecvBuf", request)]
        refused = wait_for_one(*pair)
        waiting = pair[1 - pair.index(refused)]
        found[word] = caller.answer(refused), waiting.done()
        found[f"{word}, cleanup"] = caller.call("CleanupGraph", number(1, 2 + request_id)), caller.answer(waiting)
    return found


def wait_for_one(*calls):
    """The first of the calls to end."""
    condition, ended = threading.Condition(), []

    def note(call):
        with condition:
            ended.append(call)
            condition.notify()
    for call in calls:
        call.add_done_callback(lambda _, call=call: note(call))
    with condition:
        condition.wait_for(lambda: ended, timeout=30)
        return ended[0]


class WorkerCallsTest(unittest.TestCase):

    def test_answers_are_those_of_tensorflow(self):
        both = []
        for kind in ("tensorflow", "flowgrid"):
            with serving.server(kind) as targets:
                both.append(answers(Caller(targets["worker"][0])))
        self.assertEqual(both[1], both[0])
        ended = (("OK", ""), ("INTERNAL", "Delete called on non-empty BufRendezvous"))
        self.assertEqual(both[0]["a second consumer, cleanup"], ended)


if __name__ == "__main__":
    unittest.main()
