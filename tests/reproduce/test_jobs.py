"""Runner: results in order, kept, read back, and done again where damaged."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import efemb
from efemb.reproduce.jobs import Job, Runner


def jobs(ran, n=6, fail=None):
    """Jobs that note their number."""

    def job(number):
        def work():
            if number == fail:
                raise ValueError("job failed")
            ran.append(number)
            return {"number": number}, {"square": np.array([number**2])}

        return Job("study", f"job {number}", {"number": number}, work)

    return [job(number) for number in range(n)]


@pytest.mark.parametrize("at_once", [1, 3])
def test_results_come_in_the_order_of_the_jobs(tmp_path, at_once):
    ran, told = [], []
    runner = Runner(tmp_path, lambda text, done, total: told.append((text, done, total)))
    found = runner.run(jobs(ran), at_once)
    assert [one.figures["number"] for one in found] == list(range(6))
    assert [int(one.arrays["square"][0]) for one in found] == [0, 1, 4, 9, 16, 25]
    assert sorted(ran) == list(range(6))
    assert {text for text, _, _ in told} == {f"study: job {number}" for number in range(6)}
    assert all(0 <= done < total == 6 for _, done, total in told)


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_was_done_is_not_done_again(tmp_path, at_once):
    ran = []
    Runner(tmp_path).run(jobs(ran, 4), at_once)
    ran.clear()
    found = Runner(tmp_path).run(jobs(ran, 6), at_once)
    assert sorted(ran) == [4, 5]
    assert [one.figures["number"] for one in found] == list(range(6))


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_failure_is_raised_and_finished_jobs_are_kept(tmp_path, at_once):
    ran = []
    with pytest.raises(ValueError, match="job failed"):
        Runner(tmp_path).run(jobs(ran, fail=3), at_once)
    before = set(ran)
    assert {0, 1, 2} <= before
    ran.clear()
    Runner(tmp_path).run(jobs(ran), at_once)
    assert not before & set(ran)


@pytest.mark.parametrize("kind", ["json", "npz"])
def test_a_damaged_result_is_made_again(tmp_path, kind):
    ran = []
    (job,) = jobs(ran, 1)
    Runner(tmp_path).run([job])
    path = tmp_path / "study" / f"{job.key}.{kind}"
    path.write_bytes(path.read_bytes()[:10])
    (found,) = Runner(tmp_path).run([job])
    assert ran == [0, 0]
    assert found.figures == {"number": 0}


def flipped(content, place):
    changed = bytearray(content)
    changed[place % len(content)] ^= 1
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "npz"])
def test_no_flipped_bit_is_believed_or_ends_the_run(tmp_path, kind):
    ran = []
    (job,) = jobs(ran, 1)
    for place in range(0, 1000, 7):
        Runner(tmp_path).run([job])
        ran.clear()
        path = tmp_path / "study" / f"{job.key}.{kind}"
        path.write_bytes(flipped(path.read_bytes(), place))
        (outcome,) = Runner(tmp_path).run([job])
        assert (outcome.figures, outcome.arrays["square"]) == ({"number": 0}, [0])
        assert ran == [0]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{}", b'{"checksum": 1}', b"[" * 100_000, b"\xff", b"\0" * 99]
)
@pytest.mark.parametrize("kind", ["json", "npz"])
def test_foreign_results_are_made_again(tmp_path, kind, content):
    ran = []
    (job,) = jobs(ran, 1)
    Runner(tmp_path).run([job])
    (tmp_path / "study" / f"{job.key}.{kind}").write_bytes(content)
    Runner(tmp_path).run([job])
    assert ran == [0, 0]


def test_settings_and_version_name_a_job(monkeypatch):
    one = Job("study", "a job", {"k": 20, "seed": 0}, dict)
    assert one.key == Job("study", "a job", {"seed": 0, "k": 20}, list).key
    assert one.key != Job("study", "a job", {"k": 21, "seed": 0}, dict).key
    before = one.key
    monkeypatch.setattr("efemb.reproduce.jobs.__version__", "another")
    assert one.key != before


@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_ends_the_run_and_keeps_nothing_of_the_fit_that_was_cut_short(tmp_path):
    def press(progress):
        os.kill(os.getpid(), signal.SIGINT)

    def work():
        model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[press])
        model.fit(np.random.default_rng(0).poisson(1.0, (30, 5)))
        return {"passes": model.n_iter_}, {}

    ran = []
    with pytest.raises(KeyboardInterrupt):
        Runner(tmp_path).run([Job("study", "fit", {}, work), *jobs(ran, 1)])
    assert ran == []
    assert not list(tmp_path.rglob("*.json"))
