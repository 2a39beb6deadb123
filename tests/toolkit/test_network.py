"""The Hub out of reach is noticed once, within two seconds, and nothing retries afterwards.

Only servers on the loopback interface are asked.
"""

import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import datasets.config
import pytest
from huggingface_hub import constants

from toolkit import network


@contextmanager
def listening(answer):
    """A server that calls `answer(connection)` for everybody who connects; gives its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def stay_silent(connection):
    time.sleep(60)


def trickle(connection):
    for byte in b"HTTP/1.1 200 OK\r\n" * 100:
        connection.sendall(bytes([byte]))
        time.sleep(0.5)


def answer_with(status):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    return lambda connection: Handler(connection, ("127.0.0.1", 0), None)


def closed_port():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def ask(monkeypatch):
    """hub_failure() for an endpoint, in a process that has asked nobody before."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # so that it is put back afterwards
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", False)
    network.hub_failure.cache_clear()

    def at(endpoint):
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        return network.hub_failure()

    yield at
    network.hub_failure.cache_clear()


def is_offline():
    return (
        constants.HF_HUB_OFFLINE
        and datasets.config.HF_HUB_OFFLINE
        and datasets.config.HF_DATASETS_OFFLINE
        and os.environ["HF_HUB_OFFLINE"] == "1"
    )


@pytest.mark.parametrize("status", [200, 302, 401, 404])
def test_a_hub_that_answers_is_reachable(ask, status):
    with listening(answer_with(status)) as endpoint:
        assert ask(endpoint) is None
    assert network.hub_reachable()
    assert not is_offline()


def test_a_hub_that_is_down_is_not(ask):
    with listening(answer_with(503)) as endpoint:
        assert ask(endpoint) == f"{endpoint} answers with HTTP status 503"
    assert is_offline()


@pytest.mark.parametrize("behaviour", [stay_silent, trickle])
def test_a_hub_that_keeps_us_waiting_is_given_up_after_two_seconds(ask, behaviour):
    with listening(behaviour) as endpoint:
        start = time.perf_counter()
        assert endpoint in ask(endpoint)
        assert 1.5 < time.perf_counter() - start < 3
        assert not network.hub_reachable()  # known by now
        assert time.perf_counter() - start < 3
    assert is_offline()


def test_a_closed_port_is_noticed_at_once(ask):
    start = time.perf_counter()
    assert "cannot be reached" in ask(closed_port())
    assert time.perf_counter() - start < 1
    assert is_offline()


def test_offline_mode_of_the_user_is_respected_without_asking(ask, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(network, "_probe", lambda timeout: pytest.fail("asked"))
    assert "HF_HUB_OFFLINE" in ask("http://127.0.0.1:9")
    assert is_offline()


LOADERS = """
import time
import datasets, transformers
from toolkit.errors import UserError
from toolkit.data.text_classification import load_text_classification
from toolkit.sources import resolve_model
transformers.AutoConfig, transformers.AutoTokenizer  # imported on first use
start = time.perf_counter()
for load in (lambda: resolve_model("nobody/no-such-model"),
             lambda: load_text_classification("nobody/no-such-data"),
             lambda: transformers.AutoConfig.from_pretrained("nobody/no-such-model"),
             lambda: transformers.AutoTokenizer.from_pretrained("nobody/no-such-model"),
             lambda: datasets.load_dataset("nobody/no-such-data")):
    try:
        load()
    except (UserError, OSError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
print(time.perf_counter() - start)
"""


@pytest.mark.slow
def test_no_loader_retries_once_the_hub_is_known_to_be_away(tmp_path):
    with listening(stay_silent) as endpoint:
        environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path)}
        for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
            environment.pop(name, None)
        run = subprocess.run(
            [sys.executable, "-c", LOADERS],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    *errors, seconds = run.stdout.splitlines()
    assert float(seconds) < 3
    assert len(errors) == 5
    assert errors[0].startswith("UserError cannot fetch the model 'nobody/no-such-model': http://")
    assert errors[1].startswith(
        "UserError cannot fetch the data set 'nobody/no-such-data': http://"
    )
