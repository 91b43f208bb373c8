import contextlib
import enum

from . import functional


class SDPBackend(enum.Enum):
    CUDNN_ATTENTION = 1
    FLASH_ATTENTION = 2


@contextlib.contextmanager
def sdpa_kernel(backend):
    functional.backend = backend
    yield
