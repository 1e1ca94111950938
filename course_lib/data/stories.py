"""Stories with questions whose answers are known: a generated set for extractive question answering.

No corpus of questions is free to ship here, and to learn whether a model reads at all, a made one has advantages: the
truth is known, words and sentences can be kept from training, and what helps without reading can be measured.

The recipe. A story has two threads of two events, or more of both. A thread is of a person and a thing; the first two
are of two persons with things of the same kind, or of one person with two things. An event is a deed
(`story_words.DEEDS`) with a place and a date of its own, told in another verb than questions use, mostly with pronouns,
and sometimes without the place or the date. Every second thread has a plan that came to nothing, told in the verb of
the questions and with a place or a date: a bait. The trade of a person stands in its own sentence.

Questions are of six kinds: where, when, who, what, of (what something is made of), and two-hop, where the person
is known by a trade, or the trade is asked for. Of seven in ten the story tells the answer. The others have none: the
thing was not done, or by another person, or was only planned, or the place, the date or the material is not told.

Persons, places, things, trades and materials of training, validation and test differ; months do not. The reworded
set has the facts and the questions of the test set in sentences and verbs that no other set has.
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import NamedTuple

from course_lib.checks import check_choice, check_count
from course_lib.data import story_words as words
from course_lib.data.squad import Questions, questions_of

ANSWERABLE = 0.7  # the share of questions that have an answer
PER_STORY = 6  # questions
THREADS = EVENTS = (2, 3)  # how many of a story, and of a thread, there may be
KINDS = ("where", "when", "who", "what", "two-hop", "of")
SHARES = (*KINDS, *KINDS[:-1])  # "of", the easiest, half as often as each of the others
PARTS = {"train": (0, 1, 2), "validation": (3,), "test": (4,)}  # which fifths of the words each set has


class Split(NamedTuple):
    """Four sets of questions; `reworded` asks and tells what `test` does in other words."""

    train: Questions
    validation: Questions
    test: Questions
    reworded: Questions


class Event(NamedTuple):
    """Something done, and whether the story tells where and when."""

    deed: str
    place: str
    date: str
    tells_place: bool = True
    tells_date: bool = True


class Thread(NamedTuple):
    """A person and a thing, in the order of events; `plans`, one or none, stand before event number `before`."""

    person: str
    pronoun: str
    trade: str
    thing: str
    material: str | None  # None where the story does not tell it
    seeming: str
    events: tuple[Event, ...]
    plans: tuple[Event, ...]  # they came to nothing
    before: int


class Query(NamedTuple):
    """A question without its words: the key of its template, what fills the gaps, and where its answer stands."""

    template: str
    deed: str | None
    gaps: tuple[tuple[str, str], ...]
    answer: tuple | None  # a place of the story, see `told`; None for no answer


def make(
    train: int = 6000, validation: int = 1000, test: int = 1000, seed: int = 0, threads: int = 2, events: int = 2
) -> Split:
    """Make the four sets: always the same ones for the same numbers, on every machine and with every library.

    A larger set begins with the questions of a smaller one.

    Parameters
    ----------
    train, validation, test : numbers of questions, 1 or more, six about each story; `reworded` has as many as `test`
    seed : of all sets
    threads : of a story, 2 or 3; more make longer stories and harder questions
    events : of a thread, 2 or 3

    Raises
    ------
    ValueError : a number below one, a seed below zero, or other numbers of threads or events.
    """
    check_count("seed", seed, 0)
    check_choice("threads", threads, THREADS)
    check_choice("events", events, EVENTS)
    sizes = {"train": train, "validation": validation, "test": test}
    for name, size in sizes.items():
        check_count(name, size)
    shape = threads, events
    sets = {name: _set(name, size, seed, shape, False) for name, size in sizes.items()}
    return Split(**sets, reworded=_set("test", test, seed, shape, True))


def _set(part: str, size: int, seed: int, shape: tuple[int, int], reworded: bool) -> Questions:
    rows = []
    name = "reworded" if reworded else part
    for number in range(-(-size // PER_STORY)):
        facts = Dice(f"{seed} {part} {number}")
        threads = draw_threads(facts, part, *shape)
        queries = draw_queries(facts, threads)
        wording = Dice(f"{seed} {name} {number} in words")
        context, places = told(wording, threads, reworded)
        for k, query in enumerate(queries):
            question = asked(wording, query, reworded)
            first, last = places[query.answer] if query.answer else (0, 0)
            answer = ((context[first:last],), (first,)) if query.answer else ((), ())
            kind = query.template.split()[0]
            rows.append((f"{name}-{number}-{k}", f"{name} {number}", question, context, *answer, kind))
    return questions_of(rows[:size])


class Dice:
    """Choices by chance out of `random.random` alone, the one method whose numbers Python promises not to change."""

    def __init__(self, seed: str):
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def one(self, things: Sequence):
        """One of the things."""
        return things[int(self._random() * len(things))]

    def some(self, things: Sequence, n: int) -> list:
        """n different ones, in random order."""
        left = list(things)
        return [left.pop(int(self._random() * len(left))) for _ in range(n)]


def words_of(part: str, everything: Sequence) -> list:
    """The words of which a set is made: three fifths of them for training, one fifth for each of the others."""
    return [word for i, word in enumerate(everything) if i % 5 in PARTS[part]]


def draw_threads(dice: Dice, part: str, n: int = 2, n_events: int = 2) -> list[Thread]:
    """The facts of one story: n threads, each of so many events."""
    persons = dice.some(words_of(part, words.PERSONS), 3)
    trades = dice.some(words_of(part, words.TRADES), 3)
    thing, other = dice.some(words_of(part, words.THINGS), 2)
    materials = dice.some(words_of(part, words.MATERIALS), 4)
    places = iter(dice.some(words_of(part, words.PLACES), 12))
    months = dice.some(range(12), 12)
    both = [deed for deed in words.DEEDS if words.DEEDS[deed].stage == 1]
    alike = [(0, thing), (1, thing)] if n == 3 or dice.chance(0.5) else [(0, thing), (0, other)]
    planned = dice.some(range(n), (n + 1) // 2)
    threads = []
    for i, (owner, what) in enumerate([*alike, (dice.one((0, 1, 2)), other)][:n]):
        deeds = dice.some(both, n_events - 1) + dice.some(("buy", "sell", "lose"), 1)
        deeds.sort(key=lambda deed: words.DEEDS[deed].stage)
        dates = [_date(dice, month) for month in sorted(months.pop() for _ in deeds)]
        events = []
        for deed, date in zip(deeds, dates, strict=True):
            silent = dice.one(("", "", "", "place", "date"))
            events.append(Event(deed, next(places), date, silent != "place", silent != "date"))
        possible = [deed for deed in words.DEEDS if deed not in ("buy", "lose", deeds[0])]
        there = dice.chance(0.5)
        plan = Event(dice.one(possible), next(places), _date(dice, months.pop()), there, not there)
        before = deeds.index(plan.deed) if plan.deed in deeds else len(deeds)
        plans = (plan,) if i in planned else ()
        material = materials[i] if dice.chance(0.5) else None
        person, pronoun = persons[owner]
        threads.append(
            Thread(person, pronoun, trades[owner], what, material, materials[3], tuple(events), plans, before)
        )
    return dice.some(threads, len(threads))


def draw_queries(dice: Dice, threads: list[Thread]) -> list[Query]:
    """Six questions about a story, all different, seven in ten of them with an answer."""
    pools: dict[tuple[str, bool], list[Query]] = {}
    for query in possible_queries(threads):
        pools.setdefault((query.template.split()[0], query.answer is not None), []).append(query)
    chosen = []
    while len(chosen) < PER_STORY:
        pool = pools.get((dice.one(SHARES), dice.chance(ANSWERABLE)), [])
        if pool:
            chosen.append(pool.pop(dice.one(range(len(pool)))))
    return chosen


def possible_queries(threads: list[Thread]) -> list[Query]:
    """Every question that a story answers, and those that it only seems to answer."""
    found = []
    for i, thread in enumerate(threads):
        gaps = {"n": thread.person, "o": thread.thing, "poss": _POSSESSIVE[thread.pronoun]}
        found.append(_query("of", None, gaps, ("material", i) if thread.material else None))
        done = {event.deed: (j, event) for j, event in enumerate(thread.events)}
        alike = [event.deed for other in threads if other.thing == thread.thing for event in other.events]
        alike += [plan.deed for plan in thread.plans]
        for deed in dict.fromkeys([*done, *alike]):
            j, event = done.get(deed, (0, None))
            for template, told_there, key in (("where", "tells_place", "place"), ("when", "tells_date", "date")):
                answer = (key, i, j) if event and getattr(event, told_there) else None
                found.append(_query(template, deed, gaps, answer))
                found.append(_query(f"two-hop {template}", deed, {"t": thread.trade, "o": thread.thing}, answer))
        for event in (*thread.events, *thread.plans):
            for deed in dict.fromkeys([event.deed, *alike]):
                right = deed == event.deed and event not in thread.plans
                for place, told_there in (("in", event.tells_place), ("on", event.tells_date)):
                    if not told_there:  # nobody could say what is meant
                        continue
                    where = {"p": event.place} if place == "in" else {"d": event.date}
                    found.append(_query(f"who {place}", deed, gaps | where, ("person", i) if right else None))
                    found.append(_query(f"what {place}", deed, gaps | where, ("thing", i) if right else None))
                    if place == "in":
                        answer = ("trade", thread.person) if right else None
                        found.append(_query("two-hop trade", deed, gaps | where, answer))
    return list(dict.fromkeys(found))


def _query(template: str, deed: str | None, gaps: dict[str, str], answer: tuple | None) -> Query:
    gaps = {**gaps, "a_o": _a(gaps["o"])}
    text = words.QUESTIONS[template].held_out + "".join(words.QUESTIONS[template].usual)
    needed = {name for _, name, _, _ in string.Formatter().parse(text) if name in gaps}
    return Query(template, deed, tuple((name, gaps[name]) for name in sorted(needed)), answer)


def asked(dice: Dice, query: Query, reworded: bool) -> str:
    """The words of a question."""
    gaps = dict(query.gaps)
    if query.deed:
        gaps["inf"], gaps["past"] = _say(dice, words.DEEDS[query.deed].asked, reworded).split("|")
    return _say(dice, words.QUESTIONS[query.template], reworded).format(**gaps)


def told(dice: Dice, threads: list[Thread], reworded: bool) -> tuple[str, dict]:
    """The words of a story, and the characters (first, one after the last) at which its facts stand.

    The keys are ("place", thread, event), ("date", thread, event), ("person", thread), ("thing", thread), ("material",
    thread) and ("trade", person).
    """
    text, places, known = "", {}, set()

    def add(template: str, gaps: dict[str, str], keys: dict[str, tuple]) -> None:
        nonlocal text
        text += " " if text else ""
        begin = len(text)
        for before, name, _, _ in string.Formatter().parse(template):
            text += before
            if name is not None:
                if name in keys:
                    places.setdefault(keys[name], (len(text), len(text) + len(gaps[name])))
                text += gaps[name]
        text = text[:begin] + text[begin].upper() + text[begin + 1 :]

    def add_plans(thread: Thread, gaps: dict[str, str]) -> None:
        for plan in thread.plans:
            verb = _say(dice, words.DEEDS[plan.deed].asked, reworded).split("|")[0]
            at = f"in {plan.place}" if plan.tells_place else f"on {plan.date}"
            add(_say(dice, words.PLANS, reworded), gaps | {"inf": verb, "at": at, "o": "it"}, {})

    for i, thread in enumerate(threads):
        gaps = {"n": thread.person, "o": thread.thing, "a_o": _a(thread.thing), "t": thread.trade}
        gaps |= {"s": thread.pronoun, "poss": _POSSESSIVE[thread.pronoun], "obj": _OBJECT[thread.pronoun]}
        opener = _say(dice, words.SECOND_OPENERS if thread.person in known else words.OPENERS, reworded)
        known.add(thread.person)
        keys = {"n": ("person", i), "o": ("thing", i), "t": ("trade", thread.person)}
        add(opener.replace("{a_o}", gaps["a_o"].split()[0] + " {o}"), gaps, keys)
        described = dice.one(range(len(thread.events)))
        for j, event in enumerate(thread.events):
            if j == thread.before:
                add_plans(thread, gaps)
            frames = {(True, True): words.WITH_BOTH, (True, False): words.WITH_PLACE, (False, True): words.WITH_DATE}
            frame = _say(dice, frames[event.tells_place, event.tells_date], reworded)
            deed = _say(dice, words.DEEDS[event.deed].told, reworded).replace("{o}", dice.one(("it", "it", "the {o}")))
            subject = dice.one((thread.pronoun, thread.pronoun, thread.person))
            keys = {"p": ("place", i, j), "d": ("date", i, j)}
            add(frame.replace("{vp}", deed), gaps | {"s": subject, "p": event.place, "d": event.date}, keys)
            if j == described and thread.material:
                stuff = {"m": thread.material, "x": thread.seeming}
                add(_say(dice, words.STUFF, reworded), stuff, {"m": ("material", i)})
        if thread.before == len(thread.events):
            add_plans(thread, gaps)
    return text, places


_POSSESSIVE = {"she": "her", "he": "his"}
_OBJECT = {"she": "her", "he": "him"}


def _say(dice: Dice, wording: words.Wording, reworded: bool) -> str:
    chosen = dice.one(wording.usual)  # drawn in any case
    return wording.held_out if reworded else chosen


def _date(dice: Dice, month: int) -> str:
    return f"{dice.one(range(1, 29))} {words.MONTHS[month]}"


def _a(thing: str) -> str:
    return f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"
