import pytest

from service.http.running import small_service


@pytest.fixture
def service(tmp_path):
    """A service of its own."""
    with small_service(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for all tests of a module that leave no trace in it."""
    with small_service(tmp_path_factory.mktemp("shared")) as running:
        yield running
