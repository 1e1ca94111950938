"""The words of `course_lib.data.stories`: names, things, and sentences with gaps, some kept for the reworded set.

Nobody and no place is meant: persons have given names alone, places are put together of two halves. In the gaps stand
{n} a person, {s} the same as "she" or "he", {poss} "her" or "his", {o} a thing, {p} a place, {d} a date, {t} a trade,
{m} and {x} materials, {vp} what was done, {inf} and {past} its verb in a question; {obj} is "her" or
"him", {at} a place or a date.
"""

from typing import NamedTuple

SHE = """
    Nadia Ruth Ines Greta Clara Mina Odile Tessa Hanna Priya Lena Marta Yara Signe Amina Judith Elin Carmen Sona Beatrix
    Noor Frieda Ottilie Kezia Lucia Maren Paloma Roswitha Thea Wanda
""".split()
HE = """
    Owen Tomas Felix Hugo Anton Idris Kofi Marek Silvan Rafael Bruno Emil Jonas Lars Matteo Nils Oskar Pavel Ravi Stefan
    Tariq Viktor Yusuf Casper Dilip Gregor Ivo Joachim Leander Piet
""".split()
PERSONS = [person for she, he in zip(SHE, HE, strict=True) for person in ((she, "she"), (he, "he"))]
PLACES = [
    first + second
    for second in ("combe", "ford", "wick", "mere", "holt")
    for first in """
        Ash Thorn Merrow Elder Brack Fen Hazel Linden Otter Quill Rook Sedge Tarn Willow Wren Yarrow Copper Dun Larch
        Marl
    """.split()
]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


THINGS = _names("""
    violin, lantern, bicycle, kettle, drum, mirror, rocking chair, wagon, globe, telescope, sledge, birdcage, teapot,
    accordion, typewriter, weathervane, music box, cradle, dollhouse, mandolin, barometer, canoe, sewing machine,
    signboard, vase, harp, wheelbarrow, gramophone, stool, clock, jug, statue, trunk, bench, cello, spinning wheel,
    chandelier, rowing boat, pram, easel
""")
TRADES = _names("""
    baker, weaver, doctor, teacher, gardener, ferryman, miller, tailor, potter, librarian, beekeeper, plumber, barber,
    farmer, nurse, locksmith, florist, carpenter, postman, chemist, roofer, printer, shepherd, surveyor, cook,
    bookbinder, dentist, cobbler, glazier, waiter
""")
MATERIALS = _names("""
    brass, oak, silver, walnut, copper, pine, steel, marble, cherry wood, pewter, tin, bamboo, bronze, elm, aluminium,
    glass, iron, maple, birch bark, papier-mâché
""")
MONTHS = """January February March April May June July August September October November December""".split()


class Wording(NamedTuple):
    """Ways to say one thing: those that every set may use, and one that only the reworded set has."""

    usual: tuple[str, ...]
    held_out: str


class Deed(NamedTuple):
    """Something done to a thing: how stories tell it, how questions name it (infinitive, past), and when it can be."""

    told: Wording
    asked: Wording  # "infinitive|past"
    stage: int  # 0 the first, 2 the last that happens to a thing


DEEDS = {
    "buy": Deed(
        Wording(("acquired {o}", "paid a fair price for {o}"), "took {o} home for a handful of coins"),
        Wording(("buy|bought", "purchase|purchased"), "spend money on|spent money on"),
        0,
    ),
    "mend": Deed(
        Wording(("repaired {o}", "got {o} working again"), "put {o} back in order"),
        Wording(("mend|mended", "fix|fixed"), "restore|restored"),
        1,
    ),
    "clean": Deed(
        Wording(("scrubbed {o}", "rubbed {o} until it shone"), "took the dust off {o}"),
        Wording(("clean|cleaned", "polish|polished"), "wash|washed"),
        1,
    ),
    "paint": Deed(
        Wording(("gave {o} a coat of blue", "brushed bright colours onto {o}"), "turned {o} from brown to red"),
        Wording(("paint|painted", "decorate|decorated"), "give a new shade to|gave a new shade to"),
        1,
    ),
    "show": Deed(
        Wording(("put {o} on display", "let everybody admire {o}"), "presented {o} to a crowd"),
        Wording(("exhibit|exhibited", "show|showed"), "unveil|unveiled"),
        1,
    ),
    "hide": Deed(
        Wording(("tucked {o} out of sight", "buried {o} under some leaves"), "put {o} where nobody would look"),
        Wording(("hide|hid", "conceal|concealed"), "stash|stashed"),
        1,
    ),
    "sell": Deed(
        Wording(("found a buyer for {o}", "handed {o} over for a good sum"), "let {o} go to the highest bidder"),
        Wording(("sell|sold", "part with|parted with"), "make money from|made money from"),
        2,
    ),
    "lose": Deed(
        Wording(("left {o} behind by mistake", "could no longer find {o}"), "noticed that {o} was missing"),
        Wording(("lose|lost", "mislay|mislaid"), "misplace|misplaced"),
        2,
    ),
}

OPENERS = Wording(
    (
        "{n} was a {t} and had {a_o}.",
        "There was once a {t}, {n}, with {a_o}.",
        "People talk about the {t} {n} and {poss} {o}.",
    ),
    "Ask about {n}, the {t}, and you will hear of {a_o}.",
)
SECOND_OPENERS = Wording(
    ("{n} also had {a_o}.", "Besides, {n} had {a_o}."),
    "Nor was this all: there was {a_o} of {n} as well.",
)
WITH_BOTH = Wording(
    (
        "On {d}, {s} {vp} in {p}.",
        "{s} {vp} in {p} on {d}.",
        "In {p}, {s} {vp} on {d}.",
        "It was in {p} that {s} {vp}, on {d}.",
    ),
    "On reaching {p} on {d}, {s} {vp}.",
)
WITH_PLACE = Wording(("In {p}, {s} {vp}.", "{s} {vp} in {p}."), "On reaching {p}, {s} {vp}.")
WITH_DATE = Wording(("On {d}, {s} {vp}.", "{s} {vp} on {d}."), "When {d} came, {s} {vp}.")
PLANS = Wording(
    (
        "{s} had meant to {inf} {o} {at}, but did not.",
        "{s} never came to {inf} {o} {at}, as a friend had told {obj}.",
    ),
    "The plan to {inf} {o} {at} was soon forgotten.",
)
STUFF = Wording(
    (
        "It looked like {x}, but it was made of {m}.",
        "Its maker had worked in {m}, not in {x}.",
        "It was {m}, though many took it for {x}.",
    ),
    "Seen from afar it might be {x}; from close by, it was {m}.",
)

QUESTIONS = {
    "where": Wording(
        ("Where did {n} {inf} {poss} {o}?", "In which place did {n} {inf} {poss} {o}?"),
        "What is the name of the place where {n} {past} {poss} {o}?",
    ),
    "when": Wording(
        ("When did {n} {inf} {poss} {o}?", "On which day did {n} {inf} {poss} {o}?"),
        "What was the date when {n} {past} {poss} {o}?",
    ),
    "who in": Wording(
        ("Who {past} {a_o} in {p}?", "Which person {past} {a_o} in {p}?"), "Who was it that {past} {a_o} in {p}?"
    ),
    "who on": Wording(
        ("Who {past} {a_o} on {d}?", "Which person {past} {a_o} on {d}?"), "Who was it that {past} {a_o} on {d}?"
    ),
    "what in": Wording(
        ("What did {n} {inf} in {p}?", "Which thing did {n} {inf} in {p}?"), "What was it that {n} {past} in {p}?"
    ),
    "what on": Wording(
        ("What did {n} {inf} on {d}?", "Which thing did {n} {inf} on {d}?"), "What was it that {n} {past} on {d}?"
    ),
    "of": Wording(
        ("What is {n}'s {o} made of?", "Of what is the {o} of {n} made?"), "Which material was used for {n}'s {o}?"
    ),
    "two-hop where": Wording(
        ("Where did the {t} {inf} the {o}?", "In which place did the {t} {inf} the {o}?"),
        "What is the name of the place where the {t} {past} the {o}?",
    ),
    "two-hop when": Wording(
        ("When did the {t} {inf} the {o}?", "On which day did the {t} {inf} the {o}?"),
        "What was the date when the {t} {past} the {o}?",
    ),
    "two-hop trade": Wording(
        (
            "What does the person who {past} {a_o} in {p} do for a living?",
            "What is the trade of the person who {past} {a_o} in {p}?",
        ),
        "How does the person who {past} {a_o} in {p} earn a living?",
    ),
}
