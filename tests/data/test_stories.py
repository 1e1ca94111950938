"""The generated questions: one who only reads the text answers all of them, and what the sets promise holds."""

import hashlib
import json
import re
import string

import pytest

from course_lib.data import stories
from course_lib.data import story_words as words
from course_lib.data.squad import read_squad, write_squad
from course_lib.evaluation.answer_baselines import MajorityAnswer, NoAnswer, OverlapAnswer
from course_lib.evaluation.answers import answer_scores


@pytest.fixture(scope="module", params=[(2, 2), (3, 3)], ids="{0[0]} threads of {0[1]} events".format)
def sets(request):
    return stories.make(240, 60, 120, threads=request.param[0], events=request.param[1])


def everything(split):
    return [entry for part in split for entry in zip(*part, strict=True)]


def test_the_sets_are_always_the_same():
    found = json.dumps([[column.tolist() for column in part] for part in stories.make(30, 12, 12, seed=3)])
    assert hashlib.sha256(found.encode()).hexdigest()[:16] == "b60a6837a7fbd980"
    assert everything(stories.make(6, 6, 6, seed=1)) != everything(stories.make(6, 6, 6, seed=2))


def test_a_larger_set_begins_with_the_smaller_one():
    for part, smaller in zip(stories.make(240, 60, 120), stories.make(13, 1, 7), strict=True):
        for column, less in zip(part, smaller, strict=True):
            assert column[: len(less)].tolist() == less.tolist()
    assert [len(part.ids) for part in stories.make(13, 1, 7)] == [13, 1, 7, 7]


def test_answers_stand_where_they_are_said_to_stand(sets):
    for part in sets:
        for context, answers, starts, span in zip(part.contexts, part.answers, part.starts, part.spans(), strict=True):
            assert [context[s : s + len(a)] for a, s in zip(answers, starts, strict=True)] == list(answers)
            assert len(answers) == len(starts) <= 1 and (span is not None) == bool(answers)


def test_ids_titles_and_kinds(sets):
    ids = [key for part in sets for key in part.ids]
    assert len(set(ids)) == len(ids) and ids[:2] == ["train-0-0", "train-0-1"] and "reworded-19-5" in ids
    assert sets.test.titles[6] == "test 1"
    for part in sets:
        assert set(part.kinds) == set(stories.KINDS)
        counts = [(part.kinds == kind).mean() for kind in stories.KINDS]
        assert max(counts) < 0.4 and 0.55 < sum(map(bool, part.answers)) / len(part.ids) < 0.85


def test_the_questions_about_a_story_differ(sets):
    for part in sets:
        assert len(set(zip(part.contexts, part.questions, strict=True))) > 0.97 * len(part.ids)


# One who reads: the templates as regular expressions, and whom a pronoun means.

VALUES = {
    "n": [name for name, _ in words.PERSONS], "p": words.PLACES, "t": words.TRADES, "m": words.MATERIALS,
    "x": words.MATERIALS, "o": words.THINGS,
}  # fmt: skip
SHAPES = {name: "|".join(sorted(map(re.escape, values), key=len, reverse=True)) for name, values in VALUES.items()}
SHAPES |= {"d": f"\\d+ (?:{'|'.join(words.MONTHS)})", "poss": "her|his", "obj": "her|him"}
SHAPES |= {"s": f"[Ss]he|[Hh]e|{SHAPES['n']}", "at": f"in (?:{SHAPES['p']})|on (?:{SHAPES['d']})"}


def pattern(template, **inner):
    """A template as a regular expression; a gap is a group of its name, unless `inner` says what stands in it."""
    found, seen = "", set()
    for before, name, _, _ in string.Formatter().parse(template):
        found += re.escape(before)
        if name is None:
            continue
        if name == "a_o":
            found += "an? "
            name = "o"
        if name in inner:
            found += inner[name]
        else:
            found += f"(?P={name})" if name in seen else f"(?P<{name}>{SHAPES[name]})"
            seen.add(name)
    return re.compile(f"(?i:{found[0]}){found[1:]}" if found[0].isalpha() else found)


def ways(wording):
    return (*wording.usual, wording.held_out)


THING = "(?:it|the (?:" + SHAPES["o"] + "))"
OPENINGS = [pattern(t) for wording in (words.OPENERS, words.SECOND_OPENERS) for t in ways(wording)]
STUFF = [pattern(t) for t in ways(words.STUFF)]
EVENTS = [
    (deed, pattern(t, vp=pattern(told, o=THING).pattern.replace("(?i:", "(?:")))
    for frame in (words.WITH_BOTH, words.WITH_PLACE, words.WITH_DATE)
    for t in ways(frame)
    for deed, names in words.DEEDS.items()
    for told in ways(names.told)
]
PLANS = [
    pattern(t, inf="(?:" + "|".join(a.split("|")[0] for d in words.DEEDS.values() for a in ways(d.asked)) + ")", o="it")
    for t in ways(words.PLANS)
]
ASKED = [
    (kind, deed, pattern(t, inf=verb.split("|")[0], past=verb.split("|")[-1]))
    for kind, wording in words.QUESTIONS.items()
    for t in ways(wording)
    for deed, verb in (
        [(None, "")] if kind == "of" else [(d, a) for d, names in words.DEEDS.items() for a in ways(names.asked)]
    )
]


def read(context):
    """What the text says: trades, and threads with their events."""
    trades, threads = {}, []
    for sentence in re.split(r"(?<=\.) ", context):
        for opening in OPENINGS:
            if found := opening.fullmatch(sentence):
                threads.append({"n": found["n"], "o": found["o"], "m": None, "events": []})
                trades.setdefault(found["n"], found.groupdict().get("t"))
                break
        else:
            stuff = [found["m"] for one in STUFF if (found := one.fullmatch(sentence))]
            done = [{"deed": deed, **found.groupdict()} for deed, one in EVENTS if (found := one.fullmatch(sentence))]
            planned = [one for one in PLANS if one.fullmatch(sentence)]
            assert len(stuff) + len(done) + len(planned) == 1, sentence
            if stuff:
                threads[-1]["m"] = stuff[0]
            if done:
                assert done[0]["s"].lower() in ("she", "he", threads[-1]["n"].lower())
                threads[-1]["events"].append(done[0])
    return trades, threads


def answer(question, trades, threads):
    """The answer by what was read, or ""."""
    meant = [(kind, deed, found.groupdict()) for kind, deed, one in ASKED if (found := one.fullmatch(question))]
    assert len(meant) == 1, (question, meant)
    kind, deed, gaps = meant[0]
    if "t" in gaps:
        gaps["n"] = next(name for name, trade in trades.items() if trade == gaps["t"])
    results = set()
    for thread in threads:
        if any(gaps.get(key, thread[key]) != thread[key] for key in ("n", "o")):
            continue
        if kind == "of":
            results.add(thread["m"])
        for event in thread["events"]:
            if event["deed"] == deed and all(gaps.get(key, event.get(key)) == event.get(key) for key in ("p", "d")):
                wanted = {"where": event.get("p"), "when": event.get("d"), "who": thread["n"], "what": thread["o"]}
                wanted["trade"] = trades[thread["n"]]
                results.add(wanted[kind.split()[1] if kind.startswith("two-hop") else kind.split()[0]])
    assert len(results) <= 1, "ambiguous"
    return (results or {None}).pop() or ""


def test_one_who_reads_answers_everything(sets):
    for part in sets:
        known = {context: read(context) for context in dict.fromkeys(part.contexts)}
        for question, context, answers in zip(part.questions, part.contexts, part.answers, strict=True):
            assert answer(question, *known[context]) == (answers[0] if answers else ""), (question, context)


def test_how_long_stories_are_is_chosen():
    short, long = (stories.make(60, 1, 1, threads=n, events=n).train for n in (2, 3))
    for part, n in ((short, 2), (long, 3)):
        for context in dict.fromkeys(part.contexts):
            threads = read(context)[1]
            assert len(threads) == n and [len(thread["events"]) for thread in threads] == [n] * n
            assert sum(any(one.fullmatch(s) for one in PLANS) for s in re.split(r"(?<=\.) ", context)) == n - n // 2


def test_stories_have_what_may_be_taken_for_another():
    """Two persons with things of one kind, or one person with two things, about as often."""
    alike = []
    for context in dict.fromkeys(stories.make(600, 1, 1).train.contexts):
        first, second = read(context)[1]
        alike.append(first["o"] == second["o"])
        assert (first["n"] == second["n"]) != alike[-1]
    assert 0.35 < sum(alike) / len(alike) < 0.65


def test_articles(sets):
    text = " ".join(text for part in sets for text in (*part.contexts, *part.questions))
    assert re.search(r"\ban accordion\b", text) and re.search(r"\ba trunk\b", text)
    assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text)


def skeletons(texts, names):
    """Texts without their names, things, places and dates."""
    shapes = "|".join(sorted((re.escape(name) for name in names), key=len, reverse=True))
    return {re.sub(rf"\b(?:{shapes}|\d+|{'|'.join(words.MONTHS)}|an?|her|his|him|[Ss]?[Hh]e)\b", "_", t) for t in texts}


def test_the_sets_share_no_name_and_the_reworded_one_no_sentence(sets):
    groups = [[name for name, _ in words.PERSONS], words.PLACES, words.THINGS, words.TRADES, words.MATERIALS]
    names = [name for group in groups for name in group]
    assert [len(group) for group in groups] == [60, 100, 40, 30, 20]
    assert len(set(names)) == len(names)
    seen = []
    for own in sets:
        text = " ".join([*own.contexts, *own.questions])
        seen.append({name for name in names if re.search(rf"\b{re.escape(name)}\b", text)})
    assert not seen[0] & seen[1] and not (seen[0] | seen[1]) & seen[2] and seen[3] <= seen[2]
    sentences = [skeletons({s for c in part.contexts for s in re.split(r"(?<=\.) ", c)}, names) for part in sets]
    asked = [skeletons(part.questions, names) for part in sets]
    for parts in (sentences, asked):
        assert not (parts[0] | parts[1] | parts[2]) & parts[3]
        assert parts[2] & parts[0], "those of the test set are also trained on"


def test_the_reworded_set_has_the_facts_of_the_test_set(sets):
    assert sets.reworded.answers.tolist() == sets.test.answers.tolist()
    assert sets.reworded.kinds.tolist() == sets.test.kinds.tolist()


def test_words_and_counting_are_not_enough(sets):
    for method, most in ((NoAnswer, 0.45), (MajorityAnswer, 0.1), (OverlapAnswer, 0.45)):
        predictions = method().fit(sets.train, sets.validation).predict(sets.test)
        assert answer_scores(predictions, sets.test.answers, n_resamples=1).all.f1.value < most


def test_they_are_written_in_squads_format(sets, tmp_path):
    again = read_squad(write_squad(sets.test, tmp_path / "test.json"))
    for column, expected in zip(again[:6], sets.test[:6], strict=True):
        assert column.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": 0}, "train must be a whole number of 1 or more"),
        ({"test": 2.5}, "test must be a whole number of 1 or more"),
        ({"seed": -1}, "seed must be a whole number of 0 or more"),
        ({"threads": 4}, "threads must be"),
        ({"events": 1}, "events must be"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        stories.make(**options)
