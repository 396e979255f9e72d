"""Programs on hosts that take orders: a line each, answered by a line of numbers."""

import subprocess


class Worker:
    """A program that has been started on a host, and says "ready" when orders may come."""

    def __init__(self, host, argv):
        self._process = host.popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._what = f"{argv[0]} on {host.name}"

    def expect_ready(self):
        if self._process.stdout.readline().strip() != "ready":
            self._failed()

    def order(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self):
        """The numbers of the answer to the oldest order that has none yet."""
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            self._failed()
        return [float(word) for word in line.split()]

    def end(self):
        self._process.stdin.close()

    def wait(self):
        self._process.wait(timeout=60)

    def _failed(self):
        status = self._process.wait(timeout=60)
        raise RuntimeError(f"{self._what} ended with status {status}; it says why above")


class Workers:
    """Several of them: `argv_by_host` is a list of (host, argv).  Use as a context manager."""

    def __init__(self, argv_by_host):
        self._argv_by_host = argv_by_host
        self._all = []

    def __enter__(self):
        try:
            for host, argv in self._argv_by_host:
                self._all.append(Worker(host, argv))
            for worker in self._all:
                worker.expect_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __getitem__(self, i):
        return self._all[i]

    def __len__(self):
        return len(self._all)

    def order(self, lines):
        """One order for each of the first len(lines); returns their answers."""
        for worker, line in zip(self._all, lines):
            worker.order(line)
        return [worker.answer() for worker, _ in zip(self._all, lines)]

    def __exit__(self, *_):
        for worker in self._all:
            worker.end()
        for worker in self._all:
            worker.wait()
        return False
