"""What the experiments share: which runs are made, what is written when, and what is said, with runs of no time."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from notebooks.experiments.harness import Record, Waiting, duration, main, name_of, of_trials, table
from tests.support import toy_experiment
from tests.support.toy_experiment import RUNS, Toy, toy, wait_for

ALL = ["one-0", "two-0", "three-0", "three-1"]
SCRIPT = toy_experiment.__file__


def call(experiment, *arguments):
    return main(experiment, SCRIPT, list(arguments))


def begin(folder, *arguments):
    """A process that makes the toy's runs in a folder."""
    command = [sys.executable, "-m", "tests.support.toy_experiment", str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_what_is_recorded_is_not_made_again(tmp_path, capsys):
    experiment, made = toy(tmp_path)
    assert call(experiment, "three") == 0
    assert made == ["three-0", "three-1"] and list(experiment.record.read()) == made
    assert call(experiment) == 0
    assert made == ["three-0", "three-1", "one-0", "two-0"]
    assert "one-0: 1 of 2, about 40 s\n" in capsys.readouterr().out
    assert call(experiment) == 0 and len(made) == 4
    assert capsys.readouterr().out.startswith("Nothing to do: ")


def test_again_makes_what_is_chosen_again_and_leaves_the_rest(tmp_path):
    experiment, made = toy(tmp_path)
    call(experiment)
    before = experiment.record.read()
    changed, made = toy(tmp_path, lambda run, record: {"product": -1})
    assert call(changed, "two", "one", "--again") == 0
    assert made == ["one-0", "two-0"]
    after = changed.record.read()
    assert list(after) == ALL and [after[name]["product"] for name in ALL] == [-1, -1, 30, 30]
    assert {name: after[name] for name in ALL[2:]} == {name: before[name] for name in ALL[2:]}


def test_a_whole_name_means_its_run_alone_and_words_in_any_order_keep_the_tables(tmp_path):
    experiment, made = toy(tmp_path, runs=table([Toy("trial-one"), Toy("one"), Toy("two")]))
    call(experiment, "two", "one-0")
    assert made == ["one-0", "two-0"]
    call(experiment, "one", "--again")
    assert made[2:] == ["trial-one-0", "one-0"]


def test_a_run_is_recorded_with_its_settings_and_what_it_chose(tmp_path):
    experiment, _ = toy(tmp_path)
    call(experiment, "two")
    figures = {"label": "two", "factor": 2.0, "seed": 0, "chosen": 7, "product": 20.0, "seconds": 61.4}
    assert experiment.record.file.read_text() == json.dumps({"two-0": figures}, indent=1) + "\n"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["toy.json"]


def test_a_run_whose_settings_changed_is_made_again(tmp_path, capsys):
    call(toy(tmp_path)[0])
    experiment, made = toy(tmp_path, runs=table([Toy("one"), Toy("two", 2.5), Toy("three", 3.0, chosen=8)]))
    capsys.readouterr()
    call(experiment, "--list")
    states = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert states == ["recorded", "changed", "changed", "changed:", "1"]
    call(experiment)
    assert made == ["two-0", "three-0"]


def test_each_run_is_written_before_the_next_begins_and_an_interruption_loses_no_other(tmp_path, capsys):
    seen = []

    def interrupted(run, record):
        seen.append(list(record.read()))
        if run.label == "three":
            raise KeyboardInterrupt
        return {}

    assert call(toy(tmp_path, interrupted)[0]) == 130
    assert seen == [[], ["one-0"], ["one-0", "two-0"]]
    assert "the same command goes on" in capsys.readouterr().err
    experiment, made = toy(tmp_path)
    assert call(experiment) == 0
    assert made == ["three-0", "three-1"] and list(experiment.record.read()) == ALL


def test_a_run_that_fails_takes_nothing_with_it(tmp_path, capsys):
    call(toy(tmp_path)[0], "one", "two")
    before = Record(tmp_path / "toy.json").read()

    def failing(run, record):
        if run.name == "three-0":
            raise FloatingPointError("the training diverged")
        if run.label == "two":
            raise Waiting("run first three-0")
        return {}

    experiment, made = toy(tmp_path, failing)
    assert call(experiment, "two", "three", "--again") == 1
    assert made == ["two-0", "three-0", "three-1"]
    after = experiment.record.read()
    assert list(after) == ["one-0", "two-0", "three-1"] and {name: after[name] for name in before} == before
    said = capsys.readouterr().err
    assert "FloatingPointError: the training diverged" in said and "two-0 was not made: run first three-0\n" in said
    assert said.endswith("Not made: two-0, three-0. The others are recorded.\n")


def test_figures_without_a_place_are_printed(tmp_path, capsys):
    """The record was damaged, or the disk filled, while the run took its hours."""

    def damaging(run, record):
        record.file.write_text("{")
        return {}

    experiment, _ = toy(tmp_path, damaging)
    assert call(experiment, "two") == 1
    said = capsys.readouterr()
    assert 'measured, but not recorded: {"two-0": {"label": "two", "factor": 2.0' in said.out
    assert "toy.json is damaged" in said.err


@pytest.mark.parametrize("content", ['{"one-0": {', "[]", '{"one-0": 3}', b"\xff\xfe"])
@pytest.mark.parametrize("arguments", [[], ["--list"], ["--again"]])
def test_a_damaged_record_is_named_and_not_written_over(tmp_path, capsys, content, arguments):
    experiment, made = toy(tmp_path)
    data = content if isinstance(content, bytes) else content.encode()
    experiment.record.file.write_bytes(data)
    assert call(experiment, *arguments) == 1
    said = capsys.readouterr()
    assert made == [] and experiment.record.file.read_bytes() == data
    assert f"{experiment.record.file} is damaged: " in said.err and "`git restore " in said.err
    assert "Traceback" not in said.err


def test_an_unknown_run_is_refused_before_any_other_begins(tmp_path, capsys):
    experiment, made = toy(tmp_path)
    with pytest.raises(SystemExit) as ended:
        call(experiment, "one", "four")
    assert ended.value.code == 2 and made == []
    assert f"no run's name contains 'four'. The runs: {', '.join(ALL)}\n" in capsys.readouterr().err


def test_help_says_what_is_asked_where_figures_go_and_how_to_choose(tmp_path, capsys):
    with pytest.raises(SystemExit):
        call(toy(tmp_path)[0], "--help")
    said = capsys.readouterr().out
    assert "What is ten times a factor?" in said and f"recorded in {tmp_path}/toy.json" in said
    assert "toy_experiment.py three --again\n      all of those, in place of what is recorded" in said


def test_a_list_says_what_each_run_takes_and_makes_none(tmp_path, capsys):
    experiment, made = toy(tmp_path)
    call(experiment, "three-0")
    capsys.readouterr()
    assert call(experiment, "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["lacking", "about", "40", "s", "one-0"],
        ["lacking", "about", "40", "s", "two-0"],
        ["recorded", "took", "61", "s", "three-0"],
    ]
    assert lines[4] == f"1 recorded in {tmp_path}/toy.json; the other 3 take about 120 s." and made == ["three-0"]


def test_durations_as_they_are_said():
    said = {0.4: "0 s", 150: "150 s", 2400: "40 min", 5400: "90 min", 9000: "2.5 h"}
    assert {seconds: duration(seconds) for seconds in said} == said


def test_two_runs_of_one_name_are_none(tmp_path):
    with pytest.raises(ValueError, match="two runs are called 'one-0'"):
        table([Toy("one"), Toy("one", 5.0)])
    assert list(table(RUNS.values())) == ALL


def test_a_run_keeps_to_one_core_where_its_seconds_are_those_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", lambda number: threads.append(number))
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    threads, seen = [4], []
    experiment, _ = toy(tmp_path, lambda run, record: seen.append(threads[-1]) or {})
    call(replace(experiment, one_core=True), "one")
    call(experiment, "two")
    assert seen == [1, 4] and threads == [4, 1, 4]


def test_texts_are_kept_a_line_each(tmp_path):
    record = Record(tmp_path / "toy.json")
    record.keep("one-0", ["¿dónde?", "aquí"])
    assert (tmp_path / "toy" / "one-0.txt").read_bytes() == "¿dónde?\naquí\n".encode()


def test_of_two_processes_each_makes_what_the_other_does_not(tmp_path):
    first = begin(tmp_path)
    try:
        wait_for(tmp_path / "begun one-0")
        experiment, made = toy(tmp_path)
        assert call(experiment) == 0
        assert made == ALL[1:] and list(experiment.record.read()) == ALL[1:]
        (tmp_path / "go").touch()
        said = first.communicate()[0]
    finally:
        first.kill()
    assert first.returncode == 0 and "one-0: 1 of 4" in said and "two-0" not in said
    assert experiment.record.read().keys() == set(ALL)
    assert not (tmp_path / "begun two-0").exists()


def test_the_run_of_a_killed_process_is_free_again(tmp_path, capsys):
    first = begin(tmp_path, "one")
    try:
        wait_for(tmp_path / "begun one-0")
        experiment, made = toy(tmp_path)
        assert call(experiment, "one", "--again") == 0 and made == []
        assert capsys.readouterr().out == "one-0: another process is at it\n"
    finally:
        first.kill()
        first.communicate()
    assert call(experiment, "one") == 0 and made == ["one-0"]


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    both = [begin(tmp_path, "add") for _ in range(2)]
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    assert len(Record(tmp_path / "toy.json").read()) == 60


def test_the_record_of_a_script_stands_in_a_folder_beside_it():
    assert Record.of("/somewhere/ablations.py").file == Path("/somewhere/recorded/ablations.json")


def test_trials_choose_when_all_of_them_are_recorded(tmp_path):
    record = Record(tmp_path / "toy.json")
    for name, product in (("one-0", 10), ("two-0", 20), ("three-0", 30)):
        record.add(name, {"product": product})
    assert of_trials(("three-0", "one-0"), record) == {"three-0": {"product": 30}, "one-0": {"product": 10}}
    with pytest.raises(Waiting, match="chosen by trials; run first two-1, three-1$"):
        of_trials(["two-1", "one-0", "three-1"], record)


def test_a_name_says_what_was_set():
    assert name_of(("frozen", None, 0.5, 0)) == "frozen 0.5 0"
