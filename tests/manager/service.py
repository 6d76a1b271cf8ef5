"""What the workers of these tests serve. Plain Python of 3.8, without any package."""
import builtins
import ctypes
import os
import sys
import threading
import time


class Service:
    def __init__(self):
        self.kept = []

    def echo(self, value):
        return value

    def pid(self):
        return os.getpid()

    def path(self):
        return list(sys.path)

    def modules(self):
        return sorted(sys.modules)

    def version(self):
        return list(sys.version_info[:2])

    def environ(self, name):
        return os.environ.get(name)

    def keep(self, value):
        self.kept.append(value)

    def kept_count(self):
        return len(self.kept)

    def all_kept(self):
        return self.kept

    def sleep(self, seconds):
        time.sleep(seconds)
        return seconds

    def until(self, path):
        while not os.path.exists(path):
            time.sleep(0.01)

    def meet(self, mine, other):
        open(mine, "w").close()
        self.until(other)

    def spin(self):
        while True:
            pass

    def stubborn(self, seconds):
        """Does not let itself be interrupted."""
        end = time.time() + seconds
        while time.time() < end:
            try:
                while time.time() < end:
                    pass
            except BaseException:
                pass

    def hold_the_interpreter(self, seconds):
        ctypes.PyDLL(None).sleep(seconds)

    def kill(self, signal):
        os.kill(os.getpid(), signal)
        time.sleep(5)

    def read_null(self):
        ctypes.string_at(0)

    def enter_library(self, path, how):
        ctypes.CDLL(path).enter(how)

    def environ_of_child(self):
        import subprocess

        return subprocess.check_output(["env"]).decode().splitlines()

    def handler_stacks(self, size):
        """Sets one in this thread, a larger one in another; what each is told that it has."""
        class Stack(ctypes.Structure):
            _fields_ = [("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

        self.rooms, told = [], []

        def change(size):
            self.rooms.append(ctypes.create_string_buffer(size))
            wanted, now = Stack(ctypes.addressof(self.rooms[-1]), 0, size), Stack()
            assert ctypes.CDLL(None).sigaltstack(ctypes.byref(wanted), None) == 0
            assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(now)) == 0 and now.address == wanted.address
            told.append(now.size)

        change(size)
        thread = threading.Thread(target=change, args=(size + 4096,))
        thread.start()
        thread.join()
        return told

    def fork(self, how):
        """A child that comes back out of this call, as code does that thinks it is a program of its own."""
        child = os.fork()
        if child == 0:
            if how == "raises":
                raise ValueError("in the child")
            if how == "exits":
                sys.exit(7)
            return "the child's"
        return os.waitpid(child, 0)[1] >> 8

    def complain_and_abort(self, text):
        print(text, file=sys.stderr, flush=True)
        os.abort()

    def leave(self, status):
        os._exit(status)

    def fail(self, kind, text):
        raise (Own if kind == "Own" else getattr(builtins, kind))(text)

    def open(self, name):
        open(name)

    def fail_unspeakably(self):
        """With an exception whose type answers nothing."""
        class Silent(type):
            def __getattribute__(cls, name):
                raise RuntimeError(name)

        raise Silent("Unspeakable", (Exception,), {})

    def fail_deep(self, depth):
        if depth:
            self.fail_deep(depth - 1)
        raise ValueError("x" * 1000000)

    def talk(self, lines, width):
        for i in range(lines):
            print("line %d " % i + "x" * width)
            print("line %d " % i + "y" * width, file=sys.stderr)
        return lines

    def keep(self, value):
        self.kept.append(value)
        return len(self.kept)

    def kept_sums(self):
        return [sum(memoryview(value).cast("B")) for value in self.kept]

    def forget(self):
        del self.kept[:]

    def object(self):
        return Own("no value")

    def set(self):
        return {1, 2}

    def child(self):
        """Starts a process that outlives this one, if nobody ends it."""
        import subprocess

        return subprocess.Popen(["sleep", "1000"]).pid

    def thread_is_main(self):
        return threading.current_thread() is threading.main_thread()

    def open_files(self):
        return sorted(os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd")
                      if os.path.islink("/proc/self/fd/" + name))

    def _private(self):
        return "secret"


class Own(Exception):
    pass


class Pickling(Service):
    allow_pickle = True


class Closing(Service):
    def close(self):
        print("closed properly", flush=True)


make, make_pickling, make_closing = Service, Pickling, Closing


def make_badly():
    raise OSError("no model here")


def make_late():
    time.sleep(60)


def make_late_while_there_is_a_file():
    while os.path.exists(os.environ["COHABIT_TEST_FILE"]):
        time.sleep(0.01)
    return Service()


def make_once():
    """Whoever comes second cannot have it: a port, a license, a GPU."""
    try:
        os.close(os.open(os.environ["COHABIT_TEST_FILE"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        raise OSError("made already") from None
    return Service()


def make_dying():
    os.abort()


def make_nothing():
    pass
