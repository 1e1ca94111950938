"""What is told of works that came, by which way and how long; a run may be killed, and a student may forge."""

import contextlib
import errno
import os
import shutil
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from traitlets.config import Config

from course_lib.grading.marking import batch, gradings, record
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.collecting import recall, take
from course_lib.grading.marking.incoming import Arrived
from course_lib.grading.marking.laying import CAME, Came, finish, lay, noted
from course_lib.grading.marking.record import Entry

EARLY, LATE = datetime(2020, 11, 3, 17), datetime(2020, 11, 3, 18)
TIMES = {"exchange": EARLY}  # an archive has none
MOODLE, EXCHANGE = "Moodle: Anna, LATE", "exchange, written by ben"
UNREAD = "'data.csv' cannot be read"


def arrived(origin, text, lacks=(), left=(), time=None, more=()):
    files = {PurePosixPath("hw.ipynb"): text.encode(), **{PurePosixPath(name): b"1" for name in more}}
    return Arrived("anna", origin, files, time or TIMES.get(origin[:8]), tuple(lacks), left=tuple(left))


def took(root, entry, *arguments, **how):
    """What is said beside, when this arrives and is laid."""
    return take(arrived(*arguments, **how), entry, root, "hw", root / "submitted")


def place(root, step="submitted", *rest):
    return root.joinpath(step, "anna", "hw", *rest)


@pytest.fixture
def course(tmp_path):
    """A batch whose course is stood in for."""
    made = Batch.__new__(Batch)
    steps = {f"{step}_directory": step for step in ("submitted", "source", "autograded")}
    made.root, made.assignment, made.problems = tmp_path, "hw", []
    made.course = SimpleNamespace(coursedir=SimpleNamespace(**steps))
    made.record, made.entries, made.releases = tmp_path / "marks" / "hw.json", {}, {}
    return made


@pytest.fixture
def full(monkeypatch):
    """Nothing can be written."""

    def write(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    @contextlib.contextmanager
    def disk():
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", write)
            yield

    return disk


@pytest.mark.parametrize("why", ["could not be read wholly", "cannot be written"])
def test_what_went_wrong_by_one_way_is_told_until_that_way_brings_what_is_good(tmp_path, full, why):
    entry = Entry()
    took(tmp_path, entry, "exchange", "1")
    with full() if "written" in why else contextlib.nullcontext():
        took(tmp_path, entry, MOODLE, "2", [] if "written" in why else [UNREAD])
    for time in (EARLY, datetime(2020, 1, 1)):  # the work that is there, and older
        took(tmp_path, entry, "exchange", "1" if time == EARLY else "0", time=time)
        assert list(entry.unlaid) == ["Moodle"] and why in entry.why and entry.needs_attention
    took(tmp_path, entry, MOODLE, "2")
    assert not entry.unlaid and place(tmp_path, "undecided", "1").is_dir()


def test_what_went_wrong_by_two_ways_is_told_of_both_until_later_work_is_laid(tmp_path, full):
    entry = Entry()
    took(tmp_path, entry, "exchange", "1")
    with full():
        took(tmp_path, entry, MOODLE, "2")
        took(tmp_path, entry, "exchange", "3", time=LATE)
    assert len(entry.collecting) == 2 and "Moodle" in entry.why and "exchange" in entry.why
    took(tmp_path, entry, "exchange", "1")
    assert list(entry.unlaid) == ["Moodle"]
    took(tmp_path, entry, "exchange", "3", time=LATE)
    assert not entry.unlaid and not entry.needs_attention


def test_what_a_work_lacks_by_one_way_is_told_until_all_comes_by_that_way(tmp_path):
    """Both ways bring the same file, and one of them has more that cannot be read."""
    entry = Entry()
    took(tmp_path, entry, MOODLE, "1", [UNREAD])
    took(tmp_path, entry, "exchange", "1")
    assert entry.lacks == f"Not all came from {MOODLE}: {UNREAD}" and entry.origin == MOODLE
    took(tmp_path, entry, "exchange", "1", [UNREAD])
    took(tmp_path, entry, MOODLE, "1")
    assert not entry.lacks and list(entry.unlaid) == ["exchange"]
    took(tmp_path, entry, "exchange", "1")
    assert not entry.needs_attention


def test_what_an_older_record_tells_is_told_and_goes_when_its_work_comes(tmp_path):
    (tmp_path / "hw.json").write_text('{"anna": {"unlaid": "It cannot be written"}, "zoe": {"unlaid": ""}}')
    found = record.load(tmp_path / "hw.json")
    assert found["anna"].collecting == ["It cannot be written"] and not found["zoe"].needs_attention
    record.save(tmp_path / "hw.json", found)
    assert record.load(tmp_path / "hw.json") == found
    place(tmp_path).mkdir(parents=True)
    place(tmp_path, "submitted", "hw.ipynb").write_text("1")
    took(tmp_path, found["anna"], MOODLE, "1")
    assert not found["anna"].unlaid and found["anna"].origin == MOODLE


def test_what_a_person_mended_is_not_told_to_be_unread_when_it_comes_wholly(tmp_path):
    entry = Entry()
    for lacks in ([], [UNREAD]):
        took(tmp_path, entry, MOODLE, "12"[bool(lacks)], lacks)
    assert entry.unlaid
    place(tmp_path, "submitted", "hw.ipynb").write_text("mended")
    took(tmp_path, entry, MOODLE, "1")
    assert not entry.needs_attention and place(tmp_path, "submitted", "hw.ipynb").read_text() == "mended"


def test_what_a_person_put_in_the_place_of_a_part_lacks_nothing(tmp_path):
    entry = Entry()
    took(tmp_path, entry, MOODLE, "1", [UNREAD])
    place(tmp_path, "submitted", "hw.ipynb").write_text("mended, but for the data")
    recall(entry, place(tmp_path))
    assert entry.lacks
    shutil.rmtree(place(tmp_path))
    recall(entry, place(tmp_path))
    assert entry.lacks, "nothing is there yet"
    place(tmp_path).mkdir()
    place(tmp_path, "submitted", "hw.ipynb").write_text("1")
    recall(entry, place(tmp_path))
    assert not entry.needs_attention
    took(tmp_path, entry, MOODLE, "1", [UNREAD])
    recall(entry, place(tmp_path))
    assert entry.lacks, "it came again, and is the same"


def test_work_that_another_account_wrote_is_its_students_when_the_own_account_hands_it_in(tmp_path):
    """And stays that, whoever hands it in later."""
    entry = Entry()
    took(tmp_path, entry, EXCHANGE, "1")
    assert entry.by_another
    for origin in ("exchange", EXCHANGE):
        took(tmp_path, entry, origin, "1", time=LATE)
        assert entry.origin == "exchange" and not entry.changed


def test_that_work_came_before_is_said(tmp_path):
    entry = Entry()
    said = [took(tmp_path, entry, MOODLE, text) for text in "121"]
    assert said == [[], [], [f"anna: what {MOODLE} has came before, and later work took its place"]]


def test_what_was_left_out_is_told_and_holds_nothing_back(tmp_path):
    entry = Entry()
    took(tmp_path, entry, MOODLE, "1", left=["'film.mp4' is too large"])
    assert entry.lacks == f"Not all came from {MOODLE}: 'film.mp4' is too large" and len(entry.came) == 1
    took(tmp_path, entry, MOODLE, "2", left=["'song.mp3' is too large"])
    assert "song.mp3" in entry.lacks and not entry.unlaid
    assert place(tmp_path, "submitted", "hw.ipynb").read_text() == "2" and len(entry.came) == 2
    assert place(tmp_path, "replaced", "1", "hw.ipynb").read_text() == "1"


@pytest.mark.parametrize("comes_again", [True, False])
def test_a_run_that_is_killed_before_its_record_is_saved_forgets_neither_origin_nor_what_lacks(tmp_path, comes_again):
    entry = Entry()
    took(tmp_path, entry, "exchange", "1")
    took(tmp_path, Entry(came=list(entry.came)), EXCHANGE, "2", left=["'film.mp4' is too large"], time=LATE)
    if comes_again:
        took(tmp_path, entry, EXCHANGE, "2", left=["'film.mp4' is too large"], time=LATE)
    else:
        recall(entry, place(tmp_path))
    assert entry.origin == EXCHANGE and "ask whose work it is" in entry.why
    assert entry.lacks == f"Not all came from {EXCHANGE}: 'film.mp4' is too large"
    entry.lacks = ""
    recall(entry, place(tmp_path))
    assert not entry.lacks, "of work that the record knows, it alone counts"
    shutil.rmtree(place(tmp_path))
    took(tmp_path, entry, MOODLE, "2")
    assert entry.origin == MOODLE


def test_undecided_work_that_a_person_puts_in_its_place_is_known(tmp_path):
    entry = Entry()
    took(tmp_path, entry, "exchange", "1")
    took(tmp_path, entry, MOODLE, "2")
    shutil.rmtree(place(tmp_path))
    place(tmp_path, "undecided", "1").rename(place(tmp_path))
    recall(entry, place(tmp_path))
    assert entry.origin == MOODLE


@pytest.mark.parametrize("name", [CAME, CAME.upper()])
@pytest.mark.parametrize("origin", ["exchange", MOODLE])
def test_no_student_writes_what_came(tmp_path, origin, name):
    """Neither where it is laid, nor where a person puts undecided work into its place."""
    entry = Entry()
    if origin == MOODLE:
        took(tmp_path, entry, "exchange", "0")
    took(tmp_path, entry, origin, "1", more=[name])
    folder = place(tmp_path) if origin == "exchange" else place(tmp_path, "undecided", "1")
    assert sorted(path.name for path in folder.glob("*[!t]")) == [CAME, "hw.ipynb"]
    assert noted(folder).origin == origin


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", '{"work": "x", "by": "me"}', "", "x whole and more", "\xff"])
def test_what_is_no_note_of_the_course_tells_nothing(tmp_path, content):
    place(tmp_path).mkdir(parents=True)
    place(tmp_path, "submitted", CAME).write_text(content, encoding="latin-1")
    entry = Entry(origin=MOODLE)
    recall(entry, place(tmp_path))
    assert entry == Entry(origin=MOODLE)
    assert lay(arrived("exchange", "1"), tmp_path, "hw", []) in ("again", "undecided")


def test_the_note_of_an_older_version_is_read(tmp_path):
    came = []
    lay(arrived(MOODLE, "1"), tmp_path, "hw", came)
    place(tmp_path, "submitted", CAME).write_text(f"{came[0]} part")
    assert noted(place(tmp_path)) == Came(came[0], "part")
    entry = Entry(origin="exchange", lacks="much")
    recall(entry, place(tmp_path))
    assert (entry.origin, entry.lacks) == ("exchange", "much")
    assert lay(arrived(MOODLE, "2"), tmp_path, "hw", list(came)) == "again"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes there")
def test_no_note_is_read_from_a_pipe_or_through_a_link(tmp_path):
    place(tmp_path).mkdir(parents=True)
    os.mkfifo(place(tmp_path, "submitted", CAME))
    assert noted(place(tmp_path)) == Came()
    place(tmp_path, "submitted", CAME).unlink()
    (tmp_path / "other").write_text("x whole")
    place(tmp_path, "submitted", CAME).symlink_to(tmp_path / "other")
    assert noted(place(tmp_path)) == Came()


def test_what_is_graded_is_known_first(course, monkeypatch):
    took(course.root, Entry(), EXCHANGE, "1", [UNREAD])
    made = gradings.Gradings(SimpleNamespace(**vars(course), say=print, helpers=frozenset()), force=False)
    monkeypatch.setattr(made, "_gradebook", contextlib.nullcontext)
    monkeypatch.setattr(gradings, "standing", lambda *_: {})
    monkeypatch.setattr(gradings, "_is_known", lambda *_: True)
    monkeypatch.setattr(gradings, "Apart", lambda *_: None)
    (job,) = made._begun(place(course.root))
    assert job.entry is course.entries["anna"] and job.entry.origin == EXCHANGE
    assert job.entry.lacks == f"Not all came from {EXCHANGE}: {UNREAD}"


def test_an_old_work_is_never_there_in_part_where_replaced_works_lie_on_another_disk(tmp_path, monkeypatch):
    """Killed while the old one is deleted behind its copy."""
    came, rename = [], os.rename
    lay(arrived("exchange", "1", more=["data.csv"]), tmp_path, "hw", came)

    def renamed(source, target, **how):
        if "replaced" in Path(target).parts:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **how)

    def removed(path, *arguments, **how):
        if Path(path).is_dir():
            (Path(path) / "hw.ipynb").unlink()
            raise SystemExit

    monkeypatch.setattr(os, "rename", renamed)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(shutil, "rmtree", removed)
        lay(arrived("exchange", "2", time=LATE), tmp_path, "hw", list(came))
    (said,) = finish(tmp_path, "hw")
    assert said == "anna: a run was interrupted here; what had come is laid"
    assert place(tmp_path, "submitted", "hw.ipynb").read_text() == "2"
    assert not place(tmp_path, "submitted", "data.csv").exists()
    assert place(tmp_path, "replaced", "1", "hw.ipynb").read_text() == "1"
    assert [path.name for path in place(tmp_path).parent.iterdir()] == ["hw"] and not finish(tmp_path, "hw")


@pytest.mark.parametrize(("left", "there", "told"), [
    ([".hw.replaced"], "0", "what was there is there again"),
    ([".hw.replaced", ".hw.arrived"], "1", "what had come is laid"),
    ([".hw.replaced", ".hw.arriving"], "0", "what came was not laid; the exchange brings it again"),
])  # fmt: skip
def test_a_run_that_was_killed_while_it_replaced_is_completed(tmp_path, left, there, told):
    for number, name in enumerate(left):
        folder = place(tmp_path).with_name(name)
        folder.mkdir(parents=True)
        (folder / "hw.ipynb").write_text(str(number))
    (said,) = finish(tmp_path, "hw")
    assert told in said and place(tmp_path, "submitted", "hw.ipynb").read_text() == there
    assert place(tmp_path, "replaced", "1").exists() == (there == "1")
    assert [path.name for path in place(tmp_path).parent.iterdir()] == ["hw"]


def test_what_cannot_take_its_place_leaves_what_was_there(tmp_path, monkeypatch):
    lay(arrived(MOODLE, "1"), tmp_path, "hw", [])
    replace = os.replace

    def held(source, target):
        if Path(source).name == ".hw.arrived" and Path(target).name == "hw":
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(PermissionError):
        patch.setattr(os, "replace", held)
        lay(arrived(MOODLE, "2"), tmp_path, "hw", [])
    assert place(tmp_path, "submitted", "hw.ipynb").read_text() == "1"
    assert "not laid" in finish(tmp_path, "hw")[0]


def test_where_replaced_works_have_no_room_the_next_run_moves_them(tmp_path):
    came = []
    lay(arrived(MOODLE, "1"), tmp_path, "hw", came)
    (tmp_path / "replaced").write_text("in the way")
    entry = Entry(came=came)
    took(tmp_path, entry, MOODLE, "2")
    assert "cannot be written" in entry.why
    (said,) = finish(tmp_path, "hw")
    assert f"what it left in {place(tmp_path).parent} is in the way: " in said
    (tmp_path / "replaced").unlink()
    assert "what had come is laid" in finish(tmp_path, "hw")[0]
    assert place(tmp_path, "replaced", "1", "hw.ipynb").read_text() == "1"
    took(tmp_path, entry, MOODLE, "2")
    assert not entry.needs_attention and entry.origin == MOODLE


def test_a_disk_that_takes_two_names_for_one_has_no_work_laid_on_it(tmp_path, monkeypatch):
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, content: write(path.with_name(path.name.lower()), content))
    entry = Entry()
    took(tmp_path, entry, "exchange", "1", more=["HW.ipynb"])
    assert "cannot be written: this disk takes the names of two of its files for one" in entry.why
    assert not place(tmp_path).exists() and not finish(tmp_path, "hw")


def graded(**more):
    return Entry(work="w", marked="w", **more)


def test_marks_of_work_that_is_not_whole_stand_when_somebody_has_looked(course):
    """Until something else lacks, or comes."""
    entry = course.entries["anna"] = graded(lacks="Not all came")
    course.settle(["anna"])
    assert not entry.needs_attention and entry.why == "settled by hand: Not all came" and not course.problems
    entry.lacks = "Other did not come"
    assert entry.needs_attention and entry.why == "Other did not come"
    entry.unlaid["Moodle"] = "It cannot be read"
    course.settle(["anna"])
    assert not entry.needs_attention
    entry.unlaid["Canvas"] = "Nor can this"
    assert entry.needs_attention
    entry.unlaid.clear()
    entry.lacks = ""
    assert not entry.needs_attention and entry.why == ""
    course.settle(["anna"])
    assert course.problems == ["anna was not settled: there is no trouble with the marks"]


def test_what_an_older_version_settled_stays_settled():
    entry = graded(trouble="Not all of it ran", settled="w Not all of it ran")
    assert not entry.needs_attention and entry.why == "settled by hand: Not all of it ran"


@pytest.mark.parametrize("how", ["other content", "another time"])
def test_newer_work_that_cannot_be_read_either_is_not_settled(course, how):
    """Nor does it read otherwise. What is settled stays settled in each run."""
    entry = course.entries["anna"] = graded()
    took(course.root, entry, "exchange", "1")
    for _ in range(2):
        took(course.root, entry, "exchange", "2", [UNREAD], time=LATE)
        if not entry.settled:
            course.settle(["anna"])
        assert not entry.needs_attention
    text, time = ("3", LATE) if how == "other content" else ("2", LATE.replace(hour=20))
    took(course.root, entry, "exchange", text, [UNREAD], time=time)
    assert entry.needs_attention


def test_undecided_work_under_the_number_of_what_was_settled_is_not_settled(course):
    entry = course.entries["anna"] = graded()
    took(course.root, entry, "exchange", "1")
    took(course.root, entry, MOODLE, "2")
    course.settle(["anna"])
    course._undecided("anna", entry)
    assert entry.undecided and not entry.needs_attention
    shutil.rmtree(place(course.root, "undecided", "1"))
    took(course.root, entry, MOODLE, "3")
    course._undecided("anna", entry)
    assert "undecided/anna/hw/1" in entry.undecided and entry.needs_attention


def test_what_was_settled_is_settled_in_whichever_order_it_comes(course):
    entry = course.entries["anna"] = graded(unlaid={"exchange": "a", "Moodle": "b"})
    entry.others = {"exchange": "1", "Moodle": "2"}
    course.settle(["anna"])
    entry.unlaid["exchange"] = entry.unlaid.pop("exchange")
    assert not entry.needs_attention
    entry.others["Moodle"] = "3"
    assert entry.needs_attention


def test_the_disk_has_what_was_laid_before_the_record_knows_it(course, monkeypatch):
    done = []
    monkeypatch.setattr(batch.os, "sync", lambda: done.append("sync"))
    monkeypatch.setattr(batch.record, "save", lambda path, entries: done.append("save"))
    monkeypatch.setattr(batch, "SAVE_S", -1)
    monkeypatch.setattr(batch.incoming, "from_archive", lambda path, numbers: (iter([arrived(MOODLE, "1")]), []))
    monkeypatch.setattr(batch.collecting, "take", lambda *arguments: done.append("lay") or [])
    monkeypatch.setattr(type(course), "numbers", {})
    course.collect(Path("all.zip"))
    assert done == ["lay", "sync", "save", "sync", "save"]
    monkeypatch.delattr(batch.os, "sync")
    course._save_laid()
    assert done[5:] == ["save"]


def test_what_was_settled_and_went_is_not_settled_when_it_comes_again(course):
    entry = course.entries["anna"] = graded(lacks="Not all came")
    course.settle(["anna"])
    entry.unsettle()
    assert not entry.needs_attention
    entry.lacks = ""
    entry.unsettle()
    entry.lacks = "Not all came"
    assert entry.needs_attention


def test_a_course_whose_configuration_names_no_exchange_has_nbgraders(course, monkeypatch):
    exchange = course.root / "exchange"
    folder = exchange / "own" / "inbound" / "anna+hw+2020-11-03 17:00:00 UTC"
    folder.mkdir(parents=True)
    (folder / "hw.ipynb").write_text("1")
    monkeypatch.setattr(batch.Exchange.root, "default_value", str(exchange))
    course.course.config, course.course.coursedir.course_id = Config(), "own"
    course.folder = lambda step: course.root / step
    course.collect()
    assert place(course.root, "submitted", "hw.ipynb").read_text() == "1"
    course.problems.clear()
    course.course.config.Exchange.root = ""
    shutil.rmtree(exchange)
    course.collect()
    assert course.problems == []


def test_who_has_two_works_is_settled_for_both(course):
    """Also by the run that lays the second."""
    place(course.root, "undecided", "1").mkdir(parents=True)
    entry = course.entries["anna"] = graded()
    course.settle(["anna"])
    assert "undecided/anna/hw/1" in entry.undecided and not entry.needs_attention
    place(course.root, "undecided", "2").mkdir()
    course._undecided("anna", entry)
    assert entry.needs_attention


def test_the_last_of_undecided_works_is_named_and_what_is_none_is_not(course):
    entry = Entry()
    place(course.root, "undecided").mkdir(parents=True)
    place(course.root, "undecided", ".DS_Store").write_text("")
    course._undecided("anna", entry)
    assert not entry.undecided
    for number in range(1, 12):
        place(course.root, "undecided", str(number)).mkdir()
    course._undecided("anna", entry)
    assert "the other is undecided/anna/hw/11." in entry.undecided


@pytest.mark.parametrize(("entry", "stays"), [
    (Entry(lacks="Not all came"), False), (Entry(unlaid={"Moodle": "It cannot be read"}), True),
    (Entry(undecided="Two works came"), True),
])  # fmt: skip
def test_who_is_removed_with_all_work_lacks_nothing(course, monkeypatch, entry, stays):
    monkeypatch.setattr(batch, "standing", lambda *_: {})
    course.entries["anna"] = entry
    course._leave_out(None)
    assert ("anna" in course.entries) == stays and bool(course.problems) != stays


def test_what_the_instructor_gives_out_is_looked_up_once(course, monkeypatch):
    place(course.root).mkdir(parents=True)
    source = course.root / "source" / "hw"
    source.mkdir(parents=True)
    (source / "data.csv").write_text("1")
    looked, glob = [], Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda path, pattern: looked.append(path) or glob(path, pattern))
    assert [course.helpers, course.helpers] == [{"data.csv"}] * 2 and list(course._brought()) == ["data.csv", b"1"]
    assert looked == [source]
