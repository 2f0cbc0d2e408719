"""A real Elasticsearch of a test run's own: one node without security, its heap small, its data in a folder of its own.

It is unpacked once, by Maven, into a folder outside of the tree that all test runs share."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path

from tests.waiting import free_port, wait_until

VERSION = "8.19.13"
_RECIPE = Path(__file__).with_name("elasticsearch")
_FETCH_S = 900
_START_S = 240.0
_STOP_S = 60
# It refuses to run as root; this user needs no account.
_NOBODY = 65534
_HEAP = "512m"
_OPTIONS = {"ES_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}
_CONFIG = """
cluster.name: pagemill-tests
node.name: only
path.data: {folder}/data
path.logs: {folder}/logs
network.host: 127.0.0.1
http.port: {port}
transport.port: {transport_port}
discovery.type: single-node
xpack.security.enabled: false
cluster.routing.allocation.disk.threshold_enabled: false
"""
_LOGGING = """
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class NotToBeHad(Exception):
    """It is not here, and can't be fetched."""


class ElasticServer:
    """`folder` must not exist yet; its parents can be entered by any user. Raises NotToBeHad when it is made."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("java"):
            raise NotToBeHad("java is not installed")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._home = _unpacked()
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("config/jvm.options.d", "data", "logs", "tmp"):
            (folder / name).mkdir(parents=True)
        config = folder / "config"
        shutil.copy(self._home / "config" / "jvm.options", config)
        (config / "jvm.options.d" / "heap.options").write_text(f"-Xms{_HEAP}\n-Xmx{_HEAP}\n")
        (config / "log4j2.properties").write_text(_LOGGING)
        places = {"folder": folder, "port": self.port, "transport_port": free_port()}
        (config / "elasticsearch.yml").write_text(_CONFIG.format(**places))

    def start(self) -> None:
        """What its own script does: a launcher that starts the server, and takes it along when it ends."""
        home, java = self._home, shutil.which("java")
        assert java is not None
        command = [
            java, "-Xms4m", "-Xmx64m", "-XX:+UseSerialGC",
            "-Dcli.name=server", "-Dcli.script=elasticsearch", "-Dcli.libs=lib/tools/server-cli",
            f"-Des.path.home={home}", f"-Des.path.conf={self._folder}/config",
            "-Des.distribution.type=tar", "-Des.java.type=ES_JAVA_HOME",
            "-cp", f"{home}/lib/*:{home}/lib/cli-launcher/*", "org.elasticsearch.launcher.CliToolLauncher",
        ]  # fmt: skip
        where = {
            "HOME": str(self._folder / "tmp"),
            "PATH": os.environ["PATH"],
            "ES_HOME": str(home),
            "ES_PATH_CONF": str(self._folder / "config"),
            "ES_TMPDIR": str(self._folder / "tmp"),
            "ES_JAVA_HOME": str(Path(java).resolve().parents[1]),
            **_OPTIONS,
        }
        as_root = os.getuid() == 0
        if as_root:
            subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", str(self._folder)], check=True)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=where,
                cwd=home,  # where it looks for its modules
                user=_NOBODY if as_root else None,
                group=_NOBODY if as_root else None,
                extra_groups=[] if as_root else None,
            )
        wait_until(self._is_up, _START_S, "Elasticsearch", look_s=0.2)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_up(self) -> bool:
        assert self._process is not None
        log = self._folder / "server.log"
        assert self._process.poll() is None, f"Elasticsearch ended: {log.read_text(errors='replace')[-2000:]}"
        try:
            with urllib.request.urlopen(f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=1s", timeout=5):
                return True
        except OSError:
            return False


def _home() -> Path:
    """Not in root's home, which no other user may enter."""
    cache = Path("/var/cache") if os.getuid() == 0 else Path.home() / ".cache"
    return cache / "pagemill-tests" / f"elasticsearch-{VERSION}"


def _unpacked() -> Path:
    """The unpacked server. The first test run fetches it, others wait for that."""
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / "elasticsearch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            half = home.with_name(f"{home.name}.half")
            shutil.rmtree(half, ignore_errors=True)
            if not shutil.which("mvn"):
                raise NotToBeHad("mvn is not installed")
            command = ["mvn", "-B", "-q", "-f", str(_RECIPE / "pom.xml"), f"-Dunpack.to={half}", "generate-resources"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S)
            if done.returncode:
                raise NotToBeHad(f"Maven could not fetch it: {(done.stdout + done.stderr)[-1000:]}")
            half.rename(home)
    return home
