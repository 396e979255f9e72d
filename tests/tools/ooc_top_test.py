"""`ooc top` on a terminal: a pseudo-terminal with a size, keys pressed, the screen looked at (pyte).

OOC_COMMAND is the command under test.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pyte
import pytest

ooc = os.environ["OOC_COMMAND"]


def environment(**more):
    return {**os.environ, "OOC_KEY": "none", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more}


class Servers:
    def __init__(self, folder):
        self.folder = folder
        self.url = re.search(r"ooc://\S+", self.ooc("up", "--nodes", "2", "--port", "0"))[0]

    def ooc(self, *arguments):
        return subprocess.run([ooc, *arguments, "--dir", self.folder / "s"], check=True, capture_output=True, text=True,
                              env=environment()).stdout

    def kill(self, name):
        pid = int((self.folder / "s" / "run" / f"{name}.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    s = Servers(tmp_path_factory.mktemp("top"))
    yield s
    s.ooc("down")


class Terminal:
    """A program on a terminal of this size."""

    def __init__(self, *arguments, columns=110, lines=20, **variables):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.all = b""
        self.master, self.slave = pty.openpty()
        self.resize(columns, lines)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(arguments, stdin=self.slave, stdout=self.slave, stderr=subprocess.PIPE,
                                        start_new_session=True, env=environment(**variables),
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))  # for Ctrl-C

    def resize(self, columns, lines):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 1 << 16)
            self.all += data
            self.stream.feed(data)

    def until(self, condition, what):
        """Reads until the screen is as wanted."""
        end = time.monotonic() + 30
        while not condition(self.lines):
            assert time.monotonic() < end and self.process.poll() is None, f"{what} is not on:\n" + "\n".join(self.lines)
            self.read(0.5)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def row(self, name):
        return next((line for line in self.lines if re.match(rf"{name}\b", line)), "")

    def ended(self):
        """The status; the terminal is as it was."""
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.1)
        status = self.process.wait(timeout=1)
        while select.select([self.master], [], [], 0)[0]:
            self.read(0)
        assert self.all.endswith(b"\x1b[?25h\x1b[?1049l"), self.all[-80:]
        assert termios.tcgetattr(self.slave) == self.modes
        os.close(self.master)
        os.close(self.slave)
        self.process.stderr.close()
        return status


@pytest.fixture
def top(servers):
    opened = []

    def start(*arguments, **options):
        t = Terminal(ooc, "top", servers.url, "--interval", "0.2", *arguments, **options)
        opened.append(t)
        return t

    yield start
    for t in opened:
        t.process.kill()


def all_there(lines):
    return all(any(line.startswith(name) for line in lines) for name in ("metad", "0", "1"))


def test_a_row_for_each_server_is_sorted_by_the_key_that_is_pressed_until_q(top, servers):
    t = top()
    t.until(all_there, "a row for each server")
    assert re.match(rf"ooc top +{re.escape(servers.url)} +\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d$", t.lines[0])
    assert t.lines[1].startswith("2 I/O nodes   read 0 B/s   written 0 B/s")
    assert re.match(r">node +read/s +written/s +requests/s +latency +queue +memory +disk +clients", t.lines[2])
    assert re.search(r"\[█*░*\] +\d+ %", t.row("0")) and re.search(r"\d (us|ms)", t.row("metad"))
    assert t.lines[-1] == "" or "q quit" in "\n".join(t.lines)
    assert b"\x1b[?1049h" in t.all and b"\x1b[32m" in t.all
    # The second node has something to do.
    t.press("w")
    t.until(lambda lines: ">written/s" in lines[2], "the mark of the column")
    data = os.urandom(4 << 20)
    write = subprocess.Popen([ooc, "--store", servers.url, "cp", "-q", "-", "on_1", "--sn", "1", "--nn", "1"], stdin=subprocess.PIPE,
                             env=environment())
    for _ in range(16):
        write.stdin.write(data)
        write.stdin.flush()
        t.read(0)
    write.stdin.close()
    assert write.wait() == 0
    t.until(lambda lines: re.search("[▁▂▃▄▅▆▇█]", re.sub(r"\[.*?\]", "", t.row("1"))), "what node 1 did in its history")
    assert not re.search("[▁▂▃▄▅▆▇█]", re.sub(r"\[.*?\]", "", t.row("0")))
    t.press("q")
    assert t.ended() == 0


def test_a_narrow_terminal_has_what_matters_most_and_no_line_is_broken(top):
    t = top(columns=110)
    t.until(all_there, "a row for each server")
    t.resize(40, 12)
    t.until(lambda lines: all_there(lines) and "history" not in lines[2] and "read/s" in lines[2], "the narrow page")
    assert "clients" not in t.lines[2] and "%" in t.row("0")
    t.resize(12, 5)
    t.until(lambda lines: lines[2].startswith(">node") and lines[3].startswith("metad"), "the smallest page")
    assert all(len(line) <= 12 for line in t.lines)
    t.resize(110, 20)
    t.until(lambda lines: "history" in lines[2], "the wide page")
    t.press("q")
    assert t.ended() == 0


def test_no_colour_where_it_is_not_wanted_and_ascii_where_the_locale_has_no_more(top):
    t = top(NO_COLOR="1", LC_ALL="C")
    t.until(all_there, "a row for each server")
    assert re.search(r"\[#*\.*\]", t.row("0"))
    assert not re.search(rb"\x1b\[3\dm", t.all)
    t.press("\x03")  # Ctrl-C
    assert t.ended() == -signal.SIGINT


def test_without_a_terminal_there_is_one_plain_snapshot(servers):
    done = subprocess.run([ooc, "top", servers.url], capture_output=True, env=environment(), timeout=60)
    assert done.returncode == 0 and done.stderr == b""
    text = done.stdout.decode("ascii")
    assert "\x1b" not in text and "q quit" not in text
    lines = text.splitlines()
    assert len(lines) == 6 and all_there(lines) and lines[2].startswith(">node")
    looks = json.loads(subprocess.run([ooc, "top", servers.url, "--json", "--once"], capture_output=True, env=environment(),
                                      check=True).stdout)
    assert looks["metad"]["up"] and [n["node"] for n in looks["nodes"]] == [0, 1]
    wrong = subprocess.run([ooc, "top", servers.url, "--sort", "colour"], capture_output=True, env=environment())
    assert wrong.returncode != 0 and b"choose node, read" in wrong.stderr


def test_a_node_that_is_gone_is_said_in_words_and_comes_back(top, servers):
    t = top()
    t.until(all_there, "a row for each server")
    servers.kill("iod-1")
    t.until(lambda lines: "has not answered for" in t.row("1"), "that node 1 is gone")
    assert "its data cannot be reached" in t.row("1") and "1 gone" in t.lines[1]
    assert re.search(r"\d+ %", t.row("0"))
    servers.ooc("up")
    t.until(lambda lines: re.search(r"\d+ %", t.row("1")), "node 1 again")
    servers.kill("metad")
    t.until(lambda lines: "has not answered for" in t.row("metad"), "that the metadata server is gone")
    assert re.search(r"\d+ %", t.row("0"))
    t.press("q")
    assert t.ended() == 0
    servers.ooc("up")
