"""A GPU without memory: launches take time, in milliseconds, and are logged."""

import contextlib

now = 0.0
log = []
capturing = None
#: Raise in the middle of a capture.
refuse_capture = False


def launch(name, ms):
    """What a kernel does, for tests."""
    global now
    if capturing is not None:
        if refuse_capture:
            raise RuntimeError("operation not permitted when stream is "
                               "capturing\nand more")
        capturing.append((name, ms))
        return
    now += ms
    log.append(name)


def synchronize():
    pass


def is_available():
    return True


def get_device_name():
    return "stub"


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = now

    def elapsed_time(self, other):
        return other.at - self.at


class Stream:
    def wait_stream(self, _):
        pass


def current_stream():
    return Stream()


@contextlib.contextmanager
def stream(_):
    yield


class CUDAGraph:
    def __init__(self):
        self.launches = []

    def replay(self):
        for name, ms in self.launches:
            launch(name, ms)


@contextlib.contextmanager
def graph(cuda_graph, stream):
    global capturing
    capturing = cuda_graph.launches
    try:
        yield
    finally:
        capturing = None
