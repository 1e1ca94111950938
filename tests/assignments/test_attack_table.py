"""The record of attacks is of the attacks that there are, our grader held them all, and what judges them can tell."""

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest

from tests.support import attack_table
from tests.support.attack_container import HARD, HOME, seen_in
from tests.support.attack_outcomes import HELD, NO_MATTER, ORDER, deserved, of_seen, reason_not_to_apply
from tests.support.attack_table import (
    GRADERS,
    OTHERS,
    RECORD,
    SOURCE,
    ages,
    days,
    digest,
    is_for,
    note,
    versions,
)
from tests.support.attacks import ATTACKS, FIRST, LONGEST_S, assignment_of, fingerprint, said_of, tries
from tests.support.course import maximum
from tests.support.other_graders import PINS, files_of_tests
from tests.support.sandbox import NEEDS_SANDBOX

RENEWS = "python -m tests.support.attack_table renews the record"
FORGED_HERE = "expect_array"  # earns a little by right, so that more can be told from it


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def source():
    return nbformat.read(SOURCE, as_version=4)


def test_the_record_is_of_the_attacks_that_there_are(record):
    assert {name: entry["fingerprint"] for name, entry in record["attacks"].items()} == {
        name: fingerprint(text) for name, text in ATTACKS.items()
    }, RENEWS
    for name, entry in record["attacks"].items():
        assert (entry["class"], entry["tries"]) == (said_of(ATTACKS[name])["class"], tries(ATTACKS[name]))
        assert entry.get("on", FIRST) == assignment_of(ATTACKS[name])


def test_attacks_on_another_assignment_are_tried_on_ours_alone(record):
    others = {name: entry for name, entry in record["attacks"].items() if "on" in entry}
    assert others and not [name for name, entry in others.items() for grader in OTHERS if grader in entry]
    assert not [name for name in others if any(is_for(grader, name) for grader in OTHERS)]
    assert all(is_for("ours", name) for name in ATTACKS) and is_for("otter", FORGED_HERE)


def test_our_grader_was_tried_by_every_attack_and_held(record):
    assert {name: entry.get("ours") for name, entry in record["attacks"].items()} == {
        name: [HELD] for name in ATTACKS
    }, RENEWS


@pytest.mark.parametrize("grader", GRADERS)
def test_what_became_of_an_attack_is_said_in_known_words(record, grader):
    for name, entry in record["attacks"].items():
        outcomes = entry.get(grader, [])
        assert outcomes == sorted(set(outcomes), key=ORDER.index), name
        assert len(outcomes) <= 1 or not {HELD, NO_MATTER} & set(outcomes), name
        assert (outcomes == [NO_MATTER]) == bool(outcomes and reason_not_to_apply(name, grader)), name


def test_the_record_says_which_versions_were_attacked_and_when(record):
    tried = {grader for entry in record["attacks"].values() for grader in GRADERS if grader in entry}
    assert tried == set(record["graders"]) and "ours" in tried
    for grader, about in record["graders"].items():
        assert about == versions(record["attacks"], grader) | {"date": days(record["attacks"], grader)}
    for name, entry in record["attacks"].items():
        assert set(entry["tried"]) == {grader for grader in GRADERS if grader in entry}, name
        assert all(re.fullmatch(r"(\d{4}-\d\d-\d\d/?\b){1,2}", each["date"]) for each in entry["tried"].values()), name
        assert re.fullmatch("[0-9a-f]{16}|None", str(entry["tried"]["ours"]["digest"])), name
        assert all("versions" in each for each in entry["tried"].values()), name
        known = entry["tried"].get("otter", {}).get("versions")
        assert not known or PINS[0] == f"otter-grader=={known['otter-grader']}", RENEWS


ENTRY = {
    "ours": [HELD], "otter": ["took"],
    "tried": {"ours": {"date": "2026-11-29", "digest": "a"}, "otter": {"date": "2026-11-27/2026-11-28"}},
}  # fmt: skip


def test_how_old_the_record_is_can_be_asked():
    unknown = {"ours": [HELD], "tried": {"ours": {"date": "2026-12-03", "digest": None}}}
    record = {"attacks": {"x": ENTRY, "y": unknown, "z": {}}}
    assert ages(record, "a") == [
        "ours: 2 of 3 attacks, on 2026-11-29 to 2026-12-03; 1 of them on another state of course_lib/grading: "
        "--graders ours --anew tries all",
        "nbgrader: 0 of 3 attacks",
        "otter: 1 of 3 attacks, on 2026-11-27 to 2026-11-28",
    ]
    assert ages({"attacks": {"x": ENTRY}}, "a")[0] == "ours: 1 of 1 attacks, on 2026-11-29"
    elsewhere = {"on": "another", "ours": [HELD], "tried": {"ours": ENTRY["tried"]["ours"]}}
    ours, _, otter = ages({"attacks": {"x": ENTRY, "y": elsewhere}}, "a")
    assert (ours[:12], otter[:13]) == ("ours: 2 of 2", "otter: 1 of 1"), "there the others are not tried"


def test_the_age_is_said_and_nothing_tried(capsys, monkeypatch):
    monkeypatch.setattr(attack_table, "note", None)
    attack_table.main(["--ages"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ours:", "nbgrader:", "otter:"]


def test_an_attack_that_is_tried_again_makes_no_other_entry_younger(record, tmp_path, monkeypatch):
    path, today = tmp_path / "attacks.json", datetime.date.today().isoformat()
    path.write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(attack_table, "RECORD", path)
    monkeypatch.setattr(attack_table, "about", lambda grader: {"Python": "9"})
    one, other = "answer_key", "at_exit"
    note("nbgrader", one, ["forged"], digest())
    note("ours", one, [HELD], digest())
    note("ours", other, [HELD], "another state, when it began")
    new = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name, entry in new["attacks"].items() if entry != record["attacks"][name]]
    assert set(changed) <= {one, other} and other in changed
    assert new["attacks"][one]["tried"]["nbgrader"] == {"date": today, "versions": {"Python": "9"}}
    assert new["attacks"][one]["tried"]["ours"] == {"date": today, "versions": {"Python": "9"}, "digest": digest()}
    assert new["attacks"][other]["tried"]["ours"]["digest"] is None
    assert new["attacks"][other]["tried"]["nbgrader"] == record["attacks"][other]["tried"]["nbgrader"]
    assert new["graders"]["otter"] == record["graders"]["otter"]
    oldest = record["graders"]["nbgrader"]["date"].split()[0]
    before = record["graders"]["nbgrader"]
    both = {"Python": f"{before['Python']} or 9", "date": f"{oldest} to {today}"}
    assert new["graders"]["nbgrader"] == before | both, "the others were tried with what they were tried with"


def test_versions_that_nobody_knows_are_unknown():
    entries = [{"a": "1", "b": "5"}, None, {"a": "2", "b": "5"}]
    attacks = {str(n): {"ours": [HELD], "tried": {"ours": {"versions": each}}} for n, each in enumerate(entries)}
    assert versions(attacks, "ours") == {"a": "1 or 2 or unknown", "b": "5 or unknown"}
    assert versions({"x": attacks["0"], "y": {}}, "ours") == {"a": "1", "b": "5"}


def test_the_state_of_a_grader_is_that_of_its_code(tmp_path):
    (tmp_path / "inner").mkdir()
    known = set()
    for path, text in (("a.py", "1"), ("a.py", "2"), ("inner/a.py", "2"), ("b.py", ""), ("b.txt", "no code")):
        (tmp_path / path).write_text(text)
        known.add(digest(tmp_path))
    (tmp_path / "inner" / "a.py").unlink()
    known.add(digest(tmp_path))
    assert len(known) == 5


def seen(source, **other):
    most = maximum(source)
    own = deserved(ATTACKS[FORGED_HERE], source)
    marks = {"a-good": most, "m-attack": own, "z-good": most}
    return {"marks": marks, "leaked": [], "left": [], "changed": [], "taken": "", "seconds": 12.0} | other


def judged(source, name=FORGED_HERE, **other):
    return of_seen(name, seen(source, **other), source, usual=10.0)


def with_marks(source, **changed):
    marks = seen(source)["marks"]
    return {**marks, **{student.replace("_", "-"): change(marks) for student, change in changed.items()}}


def test_an_attack_that_earned_what_it_deserved_was_held(source):
    assert judged(source) == [HELD]
    nothing = with_marks(source, m_attack=lambda marks: {})
    assert judged(source, marks=nothing) == [HELD], "its own marks are the attacker's to lose"


def test_more_points_than_deserved_are_forged_in_whatever_cell(source):
    for cell in maximum(source):
        more = with_marks(
            source, m_attack=lambda marks, cell=cell: marks["m-attack"] | {cell: marks["m-attack"][cell] + 0.5}
        )
        assert judged(source, marks=more) == ["forged"], cell


def test_one_who_is_not_marked_or_waits_is_stopped(source):
    assert judged(source, marks=with_marks(source, z_good=lambda marks: {})) == ["stopped"]
    assert judged(source, seconds=10 + LONGEST_S + 1) == ["stopped"]
    assert judged(source, seconds=10 + LONGEST_S - 1) == [HELD]
    assert HARD.seconds > LONGEST_S + 40, "who is ended from outside has waited too long"


def test_points_of_others_and_of_honest_accidents_are_lost(source):
    for student in ("a_good", "z_good"):
        less = with_marks(source, **{student: lambda marks: maximum(source) | {"test-softmax": 3.5}})
        assert judged(source, marks=less) == ["lost"]
    assert judged(source, marks=with_marks(source, a_good=lambda marks: {})) == ["lost"]
    late = with_marks(source, m_attack=lambda marks: deserved(ATTACKS["accident_exit_late"], source))
    assert judged(source, name="accident_exit_late", marks=late) == [HELD]
    late["m-attack"] = late["m-attack"] | {"test-softmax": 0.0}
    assert judged(source, name="accident_exit_late", marks=late) == ["lost"]


def test_what_else_is_seen_is_said_in_the_order_of_its_weight(source):
    found = {
        "taken": "it wrote more than 64 MiB",
        "changed": ["library/x.py"],
        "left": ["python"],
        "leaked": ["leaked 1"],
    }
    assert judged(source, **found) == ["read", "outlived", "changed", "took"]
    for key, value in found.items():
        assert len(judged(source, **{key: value})) == 1


def test_the_tests_for_otter_have_the_points_of_their_cells(source):
    files = files_of_tests(source)
    assert set(files) == set(maximum(source))
    for name, text in files.items():
        compile(text, name, "exec")
        assert (
            "Score(" not in text
            and sum(map(float, re.findall(r"@score\.check\(([\d.]+),", text))) == maximum(source)[name]
        )


PROBE = """
date > ~/course/submitted/here
for place in /usr /etc {prefix}/bin {prefix}/lib /; do touch $place/outside 2>/dev/null && echo "leaked $place"; done
kill -9 {victim} 2>/dev/null && echo "leaked: a process outside was killed"
ls -d /proc/[0-9]* | wc -l
ls {repository} 2>/dev/null
python -c "import socket; socket.create_connection(('1.1.1.1', 53), timeout=1); print('leaked: the network')"
head -c 100000000 /dev/zero >/tmp/large; sleep 1
python -c "import time; time.sleep(600)" &
echo "import os" >~/start.py
touch ~/ended; sleep 3
"""


@NEEDS_SANDBOX
def test_a_container_keeps_in_what_is_in_it_and_all_is_seen(tmp_path):
    (tmp_path / "home" / "course" / "submitted").mkdir(parents=True)
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "outside"])
    try:
        probe = PROBE.format(victim=victim.pid, prefix=sys.prefix, repository=Path(__file__).parents[2] / "book")
        (tmp_path / "home" / "run").write_text(f"({probe}) >{HOME}/output.txt 2>/dev/null")
        found = seen_in(tmp_path, Path(sys.prefix))
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    assert "leaked" not in found["said"] and int(found["said"].splitlines()[0]) < 10 and len(found["said"].split()) == 1
    assert not [place for place in ("bin", "lib") if Path(sys.prefix, place, "outside").exists()]
    assert found["changed"] == ["course/submitted/here", "start.py"]
    assert found["left"] == ["python"] and "MiB" in found["taken"] and not found["killed"]
    assert not (tmp_path / "home" / "course" / "submitted" / "here").exists(), "a copy was given to it"
    assert not [
        each for each in psutil.process_iter(["cmdline"]) if f"{tmp_path}" in " ".join(each.info["cmdline"] or [])
    ]
