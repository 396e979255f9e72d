"""The metrics of both servers, over HTTP.  OOC_COMMAND, OOC_IOD and OOC_METAD are the programs under test."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest


class Server:
    """A server with --metrics on a free port; its log says which."""

    def __init__(self, folder, program, *arguments, metrics="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [program, "--folder", folder / os.path.basename(program), *arguments, "--metrics", metrics],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OOC_KEY": "none"},
        )
        self.lines = []

    def said(self, pattern):
        """What matches in the first line of the log that does."""
        for line in self.lines:
            if found := re.search(pattern, line):
                return found[1]
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"{pattern} is not in {self.lines}")

    @property
    def url(self):
        return self.said(r"metrics at (http://\S+)")

    @property
    def address(self):
        host, port = re.search(r"//([^/]+):(\d+)/", self.url).groups()
        return host, int(port)

    def metrics(self):
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return parsed(answer.read().decode())

    def raw(self, request, timeout=10):
        """The whole answer to bytes that need not be HTTP; nothing where the connection is cut off."""
        with socket.create_connection(self.address, timeout=timeout) as s:
            try:
                s.sendall(request)
                s.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: s.recv(1 << 16), b""))
            except OSError as e:
                assert not isinstance(e, TimeoutError)
                return b""

    def end(self):
        self.process.terminate()
        try:
            assert self.process.wait(timeout=20) == 0
        finally:
            self.process.kill()
            self.process.stderr.close()


def parsed(text):
    """{'name': value} and {'name{label="x"}': value}; every sample has HELP and TYPE before it, and names as they should be."""
    values, types, helped = {}, {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if found := re.fullmatch(r"# HELP ([a-z_]+) (\S.*\.)", line):
            assert found[1] not in helped
            helped.add(found[1])
        elif found := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge)", line):
            types[found[1]] = found[2]
        else:
            name, label, value = re.fullmatch(r'([a-z_]+)(\{[a-z_]+="[^"\\\n]*"\})? (\S+)', line).groups()
            assert name in helped and (types[name] == "counter") == name.endswith("_total")
            assert name + (label or "") not in values
            values[name + (label or "")] = float(value)
    return values


@pytest.fixture
def metad(tmp_path):
    s = Server(tmp_path, os.environ["OOC_METAD"], "--nodes", "1", "--listen", "127.0.0.1:0")
    yield s
    s.end()


@pytest.fixture
def iod(tmp_path, metad):
    s = Server(tmp_path, os.environ["OOC_IOD"], "--node", "0", "--metad", metad.said(r"listening on (\S+)"))
    metad.said(r"node (0) registered")
    yield s
    s.end()


def test_counters_go_up_with_what_clients_do(tmp_path, metad, iod):
    before = iod.metrics(), metad.metrics()
    assert before[0]["ooc_iod_written_bytes_total"] == 0
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    for copy in (["./file", "there"], ["there", "./back"]):
        subprocess.run(
            [os.environ["OOC_COMMAND"], "--store", f"ooc://{metad.said('listening on (.*)')}/", "cp", *copy],
            cwd=tmp_path, check=True, env={**os.environ, "OOC_KEY": "none"},
        )
    after = iod.metrics(), metad.metrics()
    assert after[0]["ooc_iod_written_bytes_total"] == 1_000_000
    assert after[0]["ooc_iod_read_bytes_total"] == 1_000_000
    assert after[0]["ooc_iod_write_requests_total"] > 0 and after[0]["ooc_iod_disk_free_bytes"] > 0
    assert after[0]["process_resident_memory_bytes"] > 1 << 20
    assert after[1]['ooc_metad_calls_total{operation="create"}'] == 1
    assert after[1]['ooc_metad_node_up{node="0"}'] == 1
    for b, a in zip(before, after):
        assert all(a[name] >= value for name, value in b.items() if "_total" in name)


def _asked_by_the_dashboard():
    with open(os.path.join(os.path.dirname(__file__), "../../packaging/grafana.json")) as file:
        panels = json.load(file)["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    return [t["expr"] for p in panels for t in p["targets"]]


def _list(metad):
    subprocess.run([os.environ["OOC_COMMAND"], "--store", f"ooc://{metad.said('listening on (.*)')}/", "ls"],
                   check=True, env={**os.environ, "OOC_KEY": "none"})


def test_the_dashboard_asks_for_what_there_is(metad, iod):
    _list(metad)  # calls that were never made are not counted
    there = {name.partition("{")[0] for name in {**metad.metrics(), **iod.metrics()}}
    for asked in _asked_by_the_dashboard():
        assert set(re.findall(r"(?:ooc|process)_[a-z_]+", asked)) <= there, asked


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus (Debian: prometheus)")
def test_prometheus_answers_what_the_dashboard_asks(tmp_path, metad, iod):
    targets = ["%s:%s" % s.address for s in (metad, iod)]
    (tmp_path / "p.yml").write_text(json.dumps({"scrape_configs": [
        {"job_name": "oocarray", "scrape_interval": "100ms", "static_configs": [{"targets": targets}]}]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = "127.0.0.1:%d" % free.getsockname()[1]
    prometheus = subprocess.Popen(
        ["prometheus", f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/p", f"--web.listen-address={at}"],
        stderr=subprocess.DEVNULL,
    )

    def values(asked):
        query = urllib.parse.urlencode({"query": asked.replace("$__rate_interval", "10s")})
        with urllib.request.urlopen(f"http://{at}/api/v1/query?{query}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    try:
        left, end = _asked_by_the_dashboard(), time.monotonic() + 60
        while left and time.monotonic() < end:
            _list(metad)
            try:
                left = [asked for asked in left if not values(asked)]
            except urllib.error.URLError as why:  # it does not listen yet, or says that it is not ready
                assert not isinstance(why, urllib.error.HTTPError) or why.code == 503, why.read()
            time.sleep(0.2)  # until Prometheus has come round again, which it tells nobody
        assert not left
    finally:
        prometheus.terminate()
        prometheus.wait(timeout=20)


def test_it_is_off_unless_told_and_a_port_alone_is_of_this_machine(tmp_path, metad):
    assert metad.address[0] == "127.0.0.1"
    s = Server(tmp_path, os.environ["OOC_IOD"], "--node", "0", "--metad", metad.said(r"listening on (\S+)"), metrics="0")
    try:
        assert s.address[0] == "127.0.0.1"
        metad.said(r"node (0) registered")
    finally:
        s.end()
    plain = subprocess.Popen(
        [os.environ["OOC_METAD"], "--folder", tmp_path / "other", "--nodes", "1", "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "OOC_KEY": "none"})
    while "serving store" not in (line := plain.stderr.readline()):
        assert "metrics" not in line
    plain.terminate()
    plain.communicate(timeout=20)


def test_what_is_no_request_gets_an_answer_or_none_and_the_server_goes_on(metad):
    status = lambda request: metad.raw(request).split(b"\r\n")[0]
    assert status(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 200 OK"
    assert status(b"HEAD /metrics HTTP/1.0\r\n\r\n") == b"HTTP/1.1 200 OK"
    assert status(b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 200 OK"
    assert status(b"GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 404 Not Found"
    assert status(b"GET /../metrics HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 404 Not Found"
    assert status(b"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 405 Method Not Allowed"
    assert status(b"GET\x00\xff\r\n\r\n") == b"HTTP/1.1 400 Bad Request"
    assert status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") == b"HTTP/1.1 400 Bad Request"
    assert b"200" not in status(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 8000 + b"\r\n\r\n")
    assert status(b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100) != b"HTTP/1.1 200 OK"
    body = metad.raw(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").split(b"\r\n\r\n", 1)[1]
    assert body == b""
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(metad.url + "/more")
    assert metad.metrics()["ooc_metad_leases"] == 0


def test_slow_clients_and_many_of_them_keep_nobody_out(metad):
    slow = []
    for _ in range(200):
        s = socket.create_connection(metad.address)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHo")
        slow.append(s)
    # None of them has had its time: the newest are kept, the others are closed, and a scrape is answered at once.
    assert metad.metrics()["ooc_metad_clients"] == 0
    slow[0].settimeout(10)
    try:
        assert slow[0].recv(100) == b""
    except ConnectionResetError:
        pass
    threads = len(os.listdir(f"/proc/{metad.process.pid}/task"))
    files = len(os.listdir(f"/proc/{metad.process.pid}/fd"))
    assert threads < 20 and files < 80
    # The store is served meanwhile.
    _list(metad)
    # The last ones run out of time.
    slow[-1].settimeout(30)
    try:
        assert slow[-1].recv(100) == b""
    except ConnectionResetError:
        pass
    for s in slow:
        s.close()
