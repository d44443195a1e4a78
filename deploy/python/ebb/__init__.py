"""Marks requests of a latency tenant, for a server in Python that runs under ``ebb run --class latency``.

    import ebb

    with ebb.request():
        answer = model(question)      # wait for the answer in here, too

ebb guesses when a process is at work from what it gives to the GPU. A request that is marked is not guessed: others make
room while it is still being prepared, and it is counted and timed as a whole in ``ebb status``. Mark from the moment a
request is taken up until its answer has left the GPU.

Without ebb, in a best-effort tenant, or before the first use of CUDA, marking does nothing and costs a microsecond. There
is nothing to configure, nothing is imported but the standard library, and nothing here raises.
"""

import contextlib
import contextvars
import ctypes

__all__ = ["attached", "request"]


def _find():
    """The two functions of ebb's library, if it was preloaded into this process."""
    try:
        process = ctypes.CDLL(None)
        begin, end = process.ebb_request_begin, process.ebb_request_end
    except (AttributeError, OSError, TypeError):
        return None
    begin.restype, begin.argtypes = ctypes.c_uint64, []
    end.restype, end.argtypes = None, [ctypes.c_uint64]
    return begin, end


_functions = _find()
# Whether a request is under way in this thread, or this task of an event loop: one inside another is a part of it.
_inside = contextvars.ContextVar("ebb_request", default=False)


def attached():
    """Whether this process runs under ``ebb run``, so that its CUDA calls go through ebb."""
    return _functions is not None


@contextlib.contextmanager
def request():
    """Marks what is done inside as one request. Gives whether ebb takes notice of it."""
    if _functions is None or _inside.get():
        yield False
        return
    begin, end = _functions
    mark = begin()
    token = _inside.set(True)
    try:
        yield mark != 0
    finally:
        end(mark)
        try:
            _inside.reset(token)
        except ValueError:
            # A generator that was begun in one task and is closed in another.
            pass
