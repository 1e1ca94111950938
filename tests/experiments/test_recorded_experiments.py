"""What the lectures quote was measured by the runs that stand in the experiments, all of them and no others."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from course_lib.checkpoints.weights import read_checkpoint
from course_lib.data import scenes
from course_lib.evaluation.attention_maps import class_map, rollout, score_maps
from course_lib.evaluation.decision_baselines import ReturnTable
from course_lib.models.gpt import GPTConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.torch import GPT, Seq2Seq, get_state, set_state
from notebooks.experiments import _spoken as spoken
from notebooks.experiments import (
    ablations,
    cliff,
    decisions,
    exact_search,
    family,
    fine_tuning,
    first_symbol,
    four_tasks,
    frozen_lake,
    gpt,
    grouped_heads,
    in_context,
    long_inputs,
    long_reviews,
    on_a_gpu,
    parts,
    positions,
    pretrain_bert,
    pretraining,
    pretraining_pays,
    recurrence,
    rnn_attention,
    score_scale,
    speech,
    text_to_text,
    train_translator,
    vision,
    vision_maps,
    warm_up,
    whole_reviews,
)
from notebooks.experiments._classified import unpacked
from notebooks.experiments.harness import Record
from notebooks.experiments.train_translator import RECIPES, SHIPPED

ROOT = Path(__file__).parents[2]
SCRIPTS = {path.stem: path for path in (ROOT / "notebooks/experiments").glob("*.py") if path.stem[0] != "_"}
CHOSEN = ("peak", "dropout", "tokens", "rate", "epochs", "lr", "layer")  # by a run, where its settings leave them open
MODULES = [
    rnn_attention,
    ablations,
    exact_search,
    fine_tuning,
    long_reviews,
    on_a_gpu,
    recurrence,
    first_symbol,
    score_scale,
    parts,
    warm_up,
    positions,
    four_tasks,
    family,
    pretraining,
    pretrain_bert,
    pretraining_pays,
    gpt,
    in_context,
    long_inputs,
    grouped_heads,
    vision,
    vision_maps,
    speech,
    text_to_text,
    decisions,
    cliff,
    frozen_lake,
    whole_reviews,
]
EXPERIMENTS = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
TIMED = pytest.mark.parametrize("module", [rnn_attention, ablations], ids=lambda m: m.__name__)


def texts(module):
    """The names of the runs that translated."""
    return {name for name, run in module.RUNS.items() if not run.is_trial}


@EXPERIMENTS
def test_the_record_has_the_runs_of_the_table_with_their_settings(module):
    experiment = module.EXPERIMENT
    recorded = experiment.record.read()
    assert recorded.keys() == experiment.runs.keys() == module.RUNS.keys()
    for name, run in experiment.runs.items():
        open_ones = {key for key in CHOSEN if getattr(run, key, 0) is None}
        settings = {key: value for key, value in run._asdict().items() if key not in open_ones}
        assert {key: recorded[name][key] for key in settings} == settings, name
        assert experiment.state(name, recorded) == "recorded"


@EXPERIMENTS
def test_the_record_is_written_as_the_harness_writes_it(module):
    """So that a run that is made again changes its own lines alone."""
    record = module.EXPERIMENT.record
    assert record.file == SCRIPTS[record.file.stem].parent / "recorded" / f"{record.file.stem}.json"
    assert record.file.read_text(encoding="utf-8") == json.dumps(record.read(), indent=1) + "\n"


@TIMED
def test_every_run_had_its_budget_of_seconds(module):
    recorded = module.EXPERIMENT.record.read()
    for name, run in module.RUNS.items():
        assert run.seconds <= recorded[name]["seconds"] < run.seconds + 1, name


@TIMED
def test_what_was_chosen_is_what_the_trials_say(module):
    record = module.EXPERIMENT.record
    for name, run in module.RUNS.items():
        if run.is_trial:
            continue
        if module is ablations:
            _, peak, tokens = module.plan(run, record)
        else:
            peak, tokens = module.chosen(module.trials_of(run), record)
        assert tuple(record.read()[name][key] for key in ("peak", "tokens")) == (peak, tokens), name


def test_what_a_fine_tuning_was_given_is_what_its_trials_say():
    record = fine_tuning.EXPERIMENT.record
    for name, figures in record.read().items():
        run = fine_tuning.chosen(fine_tuning.RUNS[name], record)
        assert (figures["epochs"], figures["lr"]) == (run.epochs, run.lr), name
        if not run.is_trial:
            right = fine_tuning.rights(figures)
            assert round(float(right.mean()), 4) == figures["accuracy"][0], name
            assert sum(n for n, _, _ in figures["calibration"]) == len(right) == fine_tuning.TEST[run.corpus], name
            assert sum(hits for *_, hits in figures["calibration"]) == right.sum(), name


def test_the_rates_of_the_recurrences_are_what_their_trials_say():
    recorded = recurrence.RECORD.read()
    for name, run in recurrence.RUNS.items():
        assert recorded[name]["rate"] == (run.rate or recurrence.chosen(run, recurrence.RECORD)), name
        assert len(recorded[name]["accuracy"]) == len(run.budgets)


def test_the_rates_of_what_came_first_are_those_of_the_best_trials():
    recorded = first_symbol.RECORD.read()
    for run in first_symbol.RUNS.values():
        if run.rate is None:
            assert recorded[run.name]["rate"] == first_symbol.chosen(run, first_symbol.RECORD), run.name


def test_each_of_four_tasks_has_the_rates_that_its_trials_say():
    record = four_tasks.EXPERIMENT.record
    for name, run in four_tasks.RUNS.items():
        if run.seed is not None:
            figures = record.read()[name]
            assert (figures["rate"], figures["layer"]) == four_tasks.chosen(run, record), name


def test_each_arm_has_the_peak_that_its_trials_say():
    record = warm_up.EXPERIMENT.record
    recorded = record.read()
    for name, run in warm_up.RUNS.items():
        assert recorded[name]["peak"] == warm_up.peak_of(run, record), name


def test_positions_train_with_the_rates_that_their_trials_chose():
    record = positions.EXPERIMENT.record
    for name, run in positions.RUNS.items():
        if not run.is_trial and run.kind != "baselines":
            assert record.read()[name]["peak"] == positions.chosen(run, record), name


def test_what_follows_a_pretraining_has_the_rates_that_its_trials_chose():
    record = pretraining_pays.EXPERIMENT.record
    for name, run in pretraining_pays.RUNS.items():
        if not run.is_trial and run.start != "tfidf":
            assert record.read()[name]["peak"] == pretraining_pays.chosen(run, record), name


def test_a_larger_base_is_chosen_by_another_seed_and_turns_the_same_models():
    record = positions.EXPERIMENT.record
    recorded = record.read()
    for name, run in positions.RUNS.items():
        if run.kind == "rotary-slow" and run.seed != positions.TRIAL_SEED:
            assert recorded[name]["base"] == positions.chosen_base(run, record), name
            trained = recorded[name.replace("-slow", "")]["accuracy"]
            assert np.allclose(recorded[name]["as_trained"], trained, atol=0.02), name


@TIMED
def test_translations_of_all_test_sentences_lie_beside_the_figures(module):
    folder = module.EXPERIMENT.record.folder
    assert {path.stem for path in folder.glob("*.txt")} == texts(module)
    assert {len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.txt")} == {1000}


def test_what_is_proven_to_be_best_is_beaten_by_no_beam():
    best, proven, texts = exact_search.read("exact")
    figures = exact_search.EXPERIMENT.record.read()
    assert proven.sum() == figures["exact"]["proven"] and texts.count("") == figures["exact"]["empty"]
    for name in exact_search.RUNS:
        log_p, _, found = exact_search.read(name)
        assert len(log_p) == len(found) == 1000 and found.count("") == figures[name]["empty"]
        assert (log_p <= best + 2 * exact_search.TOLERANCE)[proven].all(), name


def test_the_weights_that_are_kept_are_those_of_their_runs():
    folder = rnn_attention.RECORD.folder
    runs = [rnn_attention.RUNS[name] for name in rnn_attention.KEPT]
    assert {path.parent.name for path in folder.glob("*/config.json")} == {run.label for run in runs}
    for run in runs:
        settings, weights = read_checkpoint(folder / run.label)
        assert settings == run.settings
        shapes = {name: value.shape for name, value in get_state(Seq2Seq(Seq2SeqConfig(**settings))).items()}
        assert {name: value.shape for name, value in weights.items()} == shapes
        assert {value.dtype for value in weights.values()} == {np.dtype(np.float16)}


def test_gpts_train_with_the_rates_that_their_trials_chose():
    recorded = gpt.EXPERIMENT.record.read()
    reported = [name for name, run in gpt.RUNS.items() if run.kind == "gpt" and not run.is_trial]
    assert len(reported) == sum(map(len, gpt.BUDGETS.values()))
    assert {recorded[name]["peak"] for name in reported} == {gpt.chosen(gpt.EXPERIMENT.record)}
    for name, run in in_context.RUNS.items():
        if not run.is_trial:
            record = in_context.EXPERIMENT.record
            assert record.read()[name]["peak"] == in_context.chosen(run, record), name


def test_what_a_model_that_recalls_was_given_is_what_its_trials_say():
    record = long_inputs.EXPERIMENT.record
    for name, run in long_inputs.RUNS.items():
        if isinstance(run, long_inputs.Run) and not run.is_trial:
            assert record.read()[name]["peak"] == long_inputs.chosen(run, record), name


def test_heads_that_share_were_given_the_rates_of_their_trials_and_measured_at_every_length():
    record = grouped_heads.EXPERIMENT.record
    for name, figures in record.read().items():
        run = grouped_heads.RUNS[name]
        if isinstance(run, grouped_heads.Timed):
            assert figures["lengths"] == list(grouped_heads.LENGTHS)
            assert len(figures["milliseconds"]) == len(figures["mebibytes"]) == len(figures["lengths"])
        elif not run.is_trial:
            assert figures["peak"] == grouped_heads.chosen(run, record), name
            lengths = 1 + len(grouped_heads.LENGTHS) if run.arm in grouped_heads.BY_LENGTH else 0
            assert (len(figures["right"]), len(figures["right_by_length"])) == (len(grouped_heads.PAIRS), lengths)


def test_what_sees_was_given_the_rates_that_its_trials_chose():
    record = vision.EXPERIMENT.record
    recorded = record.read()
    for name, run in vision.RUNS.items():
        right = unpacked(recorded[name]["right"], vision.VALIDATION if run.is_trial else vision.TESTED)
        assert round(float(right.mean()), 4) == recorded[name]["accuracy"], name
        if run.arm in vision.NETWORKS and not run.is_trial:
            assert recorded[name]["peak"] == vision.chosen(run, record), name
            assert recorded[name]["parameters"] <= recorded[name.replace("cnn", "vit")]["parameters"], name


def test_the_maps_of_every_scene_lie_beside_their_means_and_come_out_again():
    recorded = vision_maps.EXPERIMENT.record.read()
    for seed in vision.SEEDS:
        mass, left = vision_maps.read(seed)
        for name in vision_maps.MAPS:
            assert mass[name].mean() == pytest.approx(recorded[f"maps {seed}"]["mass"][name], abs=6e-4)
            assert left[name].mean() == pytest.approx(recorded[f"maps {seed}"]["right_when_hidden"][name], abs=6e-5)
            assert len(mass[name]) == len(left[name]) == vision_maps.ASKED
    some = vision.drawn(vision.TESTED, 2000)
    images, masks = vision.labelled(some).images[:20], scenes.mask_of(some, vision.COLOUR)[:20]
    weights = vision_maps.weights_of(vision_maps.trained(1), images)
    found = score_maps(class_map(rollout(weights), (8, 8)), masks).mass
    np.testing.assert_allclose(found, vision_maps.read(1)[0]["rollout"][:20], atol=2e-3)


def test_what_a_decision_transformer_was_given_is_what_its_trials_say():
    record = decisions.EXPERIMENT.record
    for name, run in decisions.RUNS.items():
        if run.kind != "rivals" and not run.is_trial:
            assert record.read()[name]["peak"] == decisions.chosen(run, record), name


@pytest.mark.parametrize("setting", [("graph", "100"), ("crossing", "0.02")])
def test_rivals_without_a_network_obtain_what_is_recorded(setting):
    """On the same data as the models, which are drawn again here."""
    run = decisions.Run(*setting, "rivals", 2)
    at = decisions.world_of(run.world, run.seed)
    found = decisions.rivals(run, at, decisions.episodes_of(*setting, run.seed, "training", at))
    recorded = decisions.EXPERIMENT.record.read()[run.name]
    assert {key: recorded[key] for key in found} == json.loads(json.dumps(found))


@pytest.mark.parametrize("module", [cliff, frozen_lake], ids=lambda m: m.__name__)
def test_a_decision_transformer_in_a_world_of_gymnasium_has_the_rate_of_its_trials(module):
    record = module.EXPERIMENT.record
    recorded = record.read()
    trained = {run: recorded[name]["peak"] for name, run in module.RUNS.items() if not run.is_trial}
    found = {module.chosen(run, record) == peak for run, peak in trained.items() if peak is not None}
    assert found == {True}


def test_a_cliff_that_nothing_was_changed_on_is_that_of_the_other_experiment():
    found, other = cliff.EXPERIMENT.record.read(), decisions.EXPERIMENT.record.read()
    for reads, kind in cliff.READS.items():
        for seed in cliff.SEEDS:
            ours, theirs = found[f"as it is: {reads} {seed}"], other[f"cliff 0.3 {kind} {seed}"]
            assert (ours["peak"], ours["validations"]) == (theirs["peak"], theirs["validations"])
            assert [ours["obtained"]] == theirs["for_asked"][decisions.ASKED["cliff"].index(cliff.ASKED)]


def test_examples_where_the_ways_part_are_those_of_the_data():
    at = decisions.world_of("cliff", 2)
    episodes = cliff.episodes_of(cliff.ARMS["as it is"], 2, "training", at)
    recorded = cliff.EXPERIMENT.record.read()["as it is: eight steps 2"]
    done, near = cliff.examples(episodes), cliff.examples(episodes, cliff.NEAR)
    assert {letter: done.count(letter) for letter in "URDL"} == recorded["examples"] and set(done) == {"R"}
    assert len(near) > len(done) and recorded["near"] == round(near.count("R") / len(near), 4)
    assert cliff.answer(ReturnTable(episodes, cliff.ASKED), at) == recorded["table"]


def test_what_arrives_on_ice_without_a_network_is_what_is_recorded():
    run = frozen_lake.RUNS["ice rivals 2"]
    recorded = frozen_lake.EXPERIMENT.record.read()[run.name]
    found = frozen_lake.measure(run, frozen_lake.EXPERIMENT.record)
    assert {key: recorded[key] for key in found if key != "seconds"} == {
        k: v for k, v in found.items() if k != "seconds"
    }


def test_costs_are_recorded_at_every_length_at_which_the_scores_fit():
    for name, figures in long_inputs.EXPERIMENT.record.read().items():
        if name.startswith("cost"):
            ends = 1 if figures["function"] == "formula" or name == "cost tensorflow fused" else 0
            for found in (figures["milliseconds"], figures["mebibytes"]):
                assert [one is None for one in found] == [False] * (len(found) - ends) + [True] * ends, name
            assert figures["lengths"] == list(long_inputs.RUNS[name].lengths)


def test_what_is_recorded_of_speech_has_the_rates_of_its_trials_and_as_many_syllables_as_its_sets():
    record = speech.EXPERIMENT.record
    recorded = record.read()
    trained = {name: run for name, run in speech.RUNS.items() if not run.is_trial and run.arm != "rivals"}
    assert {recorded[name]["peak"] == speech.chosen(run, record) for name, run in trained.items()} == {True}
    for name in ("quiet", "6 to 8"):
        _, counts, symbols, *_ = spoken.drawn(name, 0)
        assert sum(counts) == len(symbols)
        for run in trained:
            assert len(recorded[run]["edits"][name]) == spoken.SETS[name][0]
            assert recorded[run]["said"][name] > sum(counts)


def test_the_speech_reader_that_is_kept_makes_the_errors_that_are_recorded():
    features, counts, symbols, *_ = spoken.drawn("pink 10", 0)
    true = np.split(symbols, np.cumsum(counts)[:-1])
    model = speech.trained()
    edits = [spoken.edits(*pair) for pair in zip(speech.heard(model, "all", features), true, strict=True)]
    expected = speech.EXPERIMENT.record.read()["all 1"]["edits"]["pink 10"][:100]
    assert abs(sum(edits) - sum(expected)) <= 0.03 * sum(expected)  # its weights have 16 bits
    assert np.mean(np.array(edits) == expected) > 0.95


@pytest.mark.parametrize("name", gpt.KEPT)
def test_the_kept_weights_of_a_gpt_are_those_of_the_run(name):
    settings, weights = read_checkpoint(gpt.EXPERIMENT.record.folder / name.replace(" ", "-"))
    model = GPT(GPTConfig(**settings, **gpt.QUIET))
    set_state(model, {key: value.astype(np.float32) for key, value in weights.items()})
    shortest = np.argsort([len(ids) for ids in gpt.prepared("test").ids])[:2]
    ids = [gpt.prepared("test").ids[i] for i in shortest]
    recorded = np.array(gpt.EXPERIMENT.record.read()[name]["test_nats"])
    np.testing.assert_allclose(gpt.nats_of(model, ids, gpt.tokenizer().end_id), recorded[shortest], rtol=1e-3)


@pytest.mark.parametrize(
    ("module", "folder"), [(gpt, "gpt-6000-1"), (gpt, "gpt-24000-1"), (in_context, "two-layers")]
)
def test_the_weights_of_a_gpt_are_kept_small(module, folder):
    path = module.EXPERIMENT.record.folder / folder
    settings, weights = read_checkpoint(path)
    shapes = {name: value.shape for name, value in get_state(GPT(GPTConfig(**settings))).items()}
    assert {name: value.shape for name, value in weights.items()} == shapes
    assert {value.dtype for value in weights.values()} == {np.dtype(np.float16)}
    assert sum(file.stat().st_size for file in path.iterdir()) < 2e6


def test_the_shipped_translator_is_the_one_of_its_recipe():
    recipe = RECIPES["tatoeba-es-en"]
    folder = SHIPPED / recipe.name
    figures = json.loads((folder / "figures.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    sizes = TransformerConfig.preset(recipe.preset, recipe.vocabulary, recipe.vocabulary)
    same = {"d_model": sizes.d_model, "n_layers": sizes.n_layers, "n_heads": sizes.n_heads, "d_ff": sizes.d_ff}
    same |= {"source_vocab": recipe.vocabulary, "pre_norm": recipe.pre_norm, "max_len": recipe.longest}
    assert {key: config[key] for key in same} == same
    assert figures["epochs"] == recipe.epochs
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert page == train_translator.readme(figures, folder, recipe)


def test_the_commands_and_files_that_are_named_are_there():
    cells = [cell.source for path in ROOT.glob("notebooks/*.ipynb") for cell in nbformat.read(path, 4).cells]
    pages = [path.read_text(encoding="utf-8") for path in ROOT.glob("course_lib/pretrained/*/README.md")]
    said = "\n".join(cells + pages)
    commands = {ROOT / word for word in re.findall(r"\bpython (notebooks/\S+\.py)", said)}
    assert commands == {path for name, path in SCRIPTS.items() if name != "harness"}
    files = {ROOT / "notebooks" / word for word in re.findall(r"(?<=[`\"])(?:experiments|results)/[\w/.-]+", said)}
    assert len(files) == 8 and [path for path in files if not path.exists()] == []


@EXPERIMENTS
def test_every_script_lists_its_runs(module, monkeypatch, capsys):
    path = SCRIPTS[module.__name__.rpartition(".")[2]]
    monkeypatch.setattr(sys, "argv", [str(path), "--list"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0 and len(lines) == len(module.RUNS) + 1 and "none is left to make" in lines[-1]
    assert module.EXPERIMENT.example in " ".join(module.RUNS) and module.EXPERIMENT.about == module.__doc__


def test_a_script_runs_from_the_root_of_the_course():
    """One that imports another, in a process of its own."""
    command = [sys.executable, "notebooks/experiments/ablations.py", "recpie"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no run's name contains 'recpie'" in done.stderr
    assert Record.of(SCRIPTS["ablations"]).file == ablations.EXPERIMENT.record.file
