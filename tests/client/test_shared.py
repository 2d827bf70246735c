"""The distribution tacit-client: the same sources under another name, without the laboratory."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "clients" / "python" / "shared.py"
HEAVY = ("numba", "opendp", "scipy", "pandas", "pyarrow", "dp_accounting", "matplotlib")

PROGRAM = """
import json, random, sys
class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(name + " is not installed")
sys.meta_path.insert(0, Blocked)
import hashlib, httpx, tacit_client
from tacit_client import Api, Declined, Device

def replay(one):
    sent = []
    def answer(request):
        path = request.url.path
        if path == "/v1/task":
            return httpx.Response(200, json={{**one["task"], "ids": "chosen"}})
        if path == "/v1/policy":
            return httpx.Response(200, text=one["policy"])
        if path == "/v1/reports":
            sent.append(request.content.decode())
            (report,) = json.loads(request.content)["reports"]
            return httpx.Response(200, json={{"outcomes": [{{"id": report["id"], "outcome": "accepted"}}]}})
        name = hashlib.sha256(one["policy"].encode()).hexdigest()
        taking = {{"task_id": one["task_id"], "publication": name, "taken": True}}
        return httpx.Response(200, json={{**taking, "reason": None, "message": None}})
    client = httpx.Client(transport=httpx.MockTransport(answer))
    for vector in one["reports"]:
        tape = iter(bytes.fromhex(vector["tape"]))
        random._urandom = lambda count: bytes(next(tape) for _ in range(count))
        device = Device(Api("https://coach.test", client=client), None, max_epsilon=100.0,
            max_delta=1.0, model="joint", report_id=lambda: vector["id"])
        episode = device.begin()
        for state, reward, following in vector["steps"]:
            episode.act(state)
            episode.observe(reward, following)
        if not episode.done:
            episode.leave()
        device.send()
        assert sent.pop() == vector["body"], (one["name"], vector["id"])
    return str(device.terms().guarantee)

cases = [one for name in ("cells", "trajectories") for one in json.load(open({folder!r} + name + ".json"))]
said = [replay(one) for one in cases]
cases[0]["task"]["rules"]["report"] = "numbers"
try:
    replay(cases[0])
    declined = ""
except Declined as error:
    declined = str(error)
loaded = [name for name in {heavy!r} if sys.modules.get(name)]
print(json.dumps([said, declined, loaded]))
"""  # noqa: E501


def test_it_replays_every_vector_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "clients" / "python" / "shared.py", tmp_path], check=True
    )
    program = PROGRAM.format(blocked=(*HEAVY, "tacit"), heavy=HEAVY, folder=f"{ROOT / 'vectors'}/")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    said, declined, loaded = json.loads(done.stdout)
    assert "local model" in said[0] and "joint model" in said[-1]
    assert "12 periods (18" in said[5], "plainly added up"
    assert "pip install 'tacit[client,secure]'" in declined and loaded == []


def test_it_is_small(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "clients" / "python" / "shared.py", tmp_path], check=True
    )
    files = list((tmp_path / "tacit_client").rglob("*.py"))
    whole = list((ROOT / "src").rglob("*.py"))
    assert 40 < len(files) < len(whole) / 4
    assert not [f for f in files if f.parts[-2] in ("agents", "planners", "service", "simulation")]
