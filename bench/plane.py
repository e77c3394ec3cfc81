"""Shared by the benches: a control plane's process, calls of its API, numbers of a process."""
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(port, operation, body, timeout=10):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", json.dumps(body).encode(),
        {"Content-Type": "application/x-amz-json-1.1",
         "X-Amz-Target": f"AmazonEC2ContainerServiceV20141113.{operation}"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


def wait_for(what, seconds=30):
    """The first true answer of `what`; an OSError counts as none."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = what()
            if found:
                return found
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


class Process:
    """A cotenant process of `verb` on `port` with its folders below `folder`."""

    def __init__(self, build, folder, verb, *options):
        self.build = build
        self.verb = verb
        self.port = free_port()
        os.makedirs(folder)
        self.log = open(f"{folder}.log", "w")
        self.folder = folder
        self.process = subprocess.Popen(
            [f"{build}/cotenant", verb, "--data-dir", folder, "--run-dir", f"{folder}.run",
             "--listen", f"127.0.0.1:{self.port}", "--auth", "off", *options], stdout=self.log, stderr=self.log)

    def __enter__(self):
        wait_for(lambda: call(self.port, "ListClusters", {}))
        return self

    def __exit__(self, kind, *_):
        # What `up` has started outlives it.
        if self.verb == "up":
            subprocess.run([f"{self.build}/cotenant", "down", "--data-dir", self.folder], check=False,
                           stdout=subprocess.DEVNULL)
        self.process.terminate()
        self.process.wait()
        if kind is not None:
            print(open(self.log.name).read()[-3000:], file=sys.stderr)

    @property
    def pid(self):
        return self.process.pid


def pss_mib(pid):
    """Memory that is the process's own, shared pages by their part."""
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


SHARE = {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 300}}}


def register(port, family, container):
    call(port, "RegisterTaskDefinition", {"family": family, "containerDefinitions": [container]})
