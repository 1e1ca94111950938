"""Wrong solutions of part 1: when an answer is right."""

from tests.assignments.variants import Variant
from tests.assignments.variants.question_answering.changed import EXACT, OVERLAP, body, measures

KEPT = "kept = ''.join(letter for letter in text.lower() if letter not in string.punctuation)"
ARTICLES = "('a', 'an', 'the')"

WORDS = [
    Variant(
        "capitals stay",
        body(
            "normalise",
            "kept = ''.join(letter for letter in text if letter not in string.punctuation)",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.75},
        "capitals, and articles in capitals",
    ),
    Variant(
        "small letters after the articles",
        body(
            "normalise",
            "kept = ''.join(letter for letter in text if letter not in string.punctuation)",
            f"return [word.lower() for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.25},
        "articles in capitals stay",
    ),
    Variant(
        "punctuation stays",
        body("normalise", f"return [word for word in text.lower().split() if word not in {ARTICLES}]"),
        {"test-normalise": 0.75},
        "punctuation, and articles beside it",
    ),
    Variant(
        "punctuation becomes a space",
        body(
            "normalise",
            "kept = ''.join(' ' if letter in string.punctuation else letter for letter in text.lower())",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.5},
        "rocking-chair is one word here",
    ),
    Variant(
        "punctuation taken from the ends of words alone",
        body(
            "normalise",
            "words = [word.strip(string.punctuation) for word in text.lower().split()]",
            f"return [word for word in words if word and word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.5},
        "hyphens inside stay",
    ),
    Variant(
        "a few kinds of punctuation",
        body(
            "normalise",
            "kept = re.sub(r'[.,!?;:\"\\'()-]', '', text.lower())",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.5},
        "there are 32 characters of punctuation",
    ),
    Variant(
        "the underscore taken for a letter",
        body(
            "normalise",
            "kept = re.sub(r'[^\\w\\s]', '', text.lower())",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.75},
        "to a regular expression it is one; it is in string.punctuation; and the sign of the euro is not",
    ),
    Variant(
        "articles stay",
        body("normalise", KEPT, "return kept.split()"),
        {"test-normalise": 0.75},
        "articles, and those in capitals or beside punctuation",
    ),
    Variant(
        "articles cut out of words",
        body(
            "normalise",
            KEPT,
            "for article in ('the', 'an', 'a'):",
            "    kept = kept.replace(article, '')",
            "return kept.split()",
        ),
        {"test-normalise": 0.75},
        "an anthem loses its beginning, and so does 'and'",
    ),
    Variant(
        "the first article alone",
        body(
            "normalise",
            KEPT,
            "words = kept.split()",
            f"return words[1:] if words and words[0] in {ARTICLES} else words",
        ),
        {"test-normalise": 0.75},
        "articles inside an answer stay",
    ),
    Variant(
        "an is forgotten",
        body("normalise", KEPT, "return [word for word in kept.split() if word not in ('a', 'the')]"),
        {"test-normalise": 0.75},
        "one of the three",
    ),
    Variant(
        "articles with a space on both sides",
        body(
            "normalise",
            KEPT,
            "return re.sub(r' (a|an|the) ', ' ', kept).split()",
        ),
        {"test-normalise": 0.75},
        "the first and the last word of an answer stay, and one of two in a row",
    ),
    Variant(
        "articles before punctuation",
        body(
            "normalise",
            f"kept = ' '.join(word for word in text.lower().split() if word not in {ARTICLES})",
            "return ''.join(letter for letter in kept if letter not in string.punctuation).split()",
        ),
        {"test-normalise": 0.25},
        "(the) stays",
    ),
    Variant(
        "articles beside punctuation before it goes",
        body(
            "normalise",
            "kept = re.sub(r'\\b(a|an|the)\\b', ' ', text.lower())",
            "return ''.join(letter for letter in kept if letter not in string.punctuation).split()",
        ),
        {"test-normalise": 0.25},
        "vitamin-A loses its end: it is one word when the articles go",
    ),
    Variant(
        "articles as they stand in a text, before small letters",
        body(
            "normalise",
            "kept = ''.join(letter for letter in text if letter not in string.punctuation)",
            "return [word.lower() for word in kept.split() if word not in 'a an the A An The'.split()]",
        ),
        {"test-normalise": 0.25},
        "THE and AN stay",
    ),
    Variant(
        "cut at every single space",
        body("normalise", KEPT, f"return [word for word in kept.split(' ') if word not in {ARTICLES}]"),
        {"test-normalise": 0.25},
        "several spaces make empty words, and tabs none",
    ),
    Variant(
        "one text, not a list",
        body("normalise", KEPT, f"return ' '.join(word for word in kept.split() if word not in {ARTICLES})"),
        {"test-normalise": 0.5},
        "as the official script has it; right when cut at its spaces",
    ),
    Variant(
        "words in alphabetical order",
        body("normalise", KEPT, f"return sorted(word for word in kept.split() if word not in {ARTICLES})"),
        {"test-normalise": 0.25},
        "the order of words is lost",
    ),
    Variant(
        "the last word first",
        body(
            "normalise",
            KEPT,
            "words = []",
            "for word in kept.split():",
            f"    if word not in {ARTICLES}:",
            "        words.insert(0, word)",
            "return words",
        ),
        {"test-normalise": 0.25},
        "the order of words is lost",
    ),
    Variant(
        "each word once",
        body("normalise", KEPT, f"return list(dict.fromkeys(w for w in kept.split() if w not in {ARTICLES}))"),
        {"test-normalise": 0.25},
        "words count as often as they occur",
    ),
    Variant(
        "digits go with the punctuation",
        body(
            "normalise",
            "kept = ''.join(c for c in text.lower() if c not in string.punctuation + string.digits)",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.25},
        "a date loses its day and its year",
    ),
    Variant(
        "words of letters alone",
        body("normalise", KEPT, f"return [word for word in kept.split() if word.isalpha() and word not in {ARTICLES}]"),
        {"test-normalise": 0.25},
        "a date loses its day and its year",
    ),
    Variant(
        "words of one letter dropped",
        body("normalise", KEPT, f"return [word for word in kept.split() if len(word) > 1 and word not in {ARTICLES}]"),
        {"test-normalise": 0.25},
        "only articles go, not all that is short",
    ),
    Variant(
        "whatever is a part of the text of the articles",
        body("normalise", KEPT, "return [word for word in kept.split() if word not in 'a an the']"),
        {"test-normalise": 0.25},
        "he and n stand in that text, too",
    ),
    Variant(
        "punctuation of all languages",
        body(
            "normalise",
            "kept = re.sub(r'[^\\w\\s]|_', '', text.lower())",
            f"return [word for word in kept.split() if word not in {ARTICLES}]",
        ),
        {"test-normalise": 0.25},
        "the signs of the euro and of typographers are not in string.punctuation",
    ),
]

MEASURES = [
    Variant(
        "exact match without normalising",
        measures(exact=("return float(said in (answers or ['']))",)),
        {"test-measures": 1},
        "capitals and articles, and 'The' as no answer",
    ),
    Variant(
        "exact match of sets of words",
        measures(
            exact=("return float(any(set(normalise(said)) == set(normalise(right)) for right in answers or ['']))",)
        ),
        {"test-measures": 0.5},
        "the order counts",
    ),
    Variant(
        "exact match: a part is enough",
        measures(
            exact=(
                "ours = ' '.join(normalise(said))",
                "rights = [' '.join(normalise(right)) for right in answers or ['']]",
                "return float(any(ours in right if ours else ours == right for right in rights))",
            )
        ),
        {"test-measures": 0.5},
        "a word of two is no exact match",
    ),
    Variant(
        "exact match: the end of a right answer is enough",
        measures(
            exact=(
                "ours, rights = normalise(said), [normalise(right) for right in answers or ['']]",
                "return float(any(right[-len(ours) :] == ours for right in rights))",
            )
        ),
        {"test-measures": 0.5},
        "the last word of two is no exact match",
    ),
    Variant(
        "exact match with all right answers",
        measures(exact=("return float(all(normalise(said) == normalise(right) for right in answers or ['']))",)),
        {"test-measures": 0.5},
        "one is enough",
    ),
    Variant(
        "the first right answer alone, in both",
        measures(
            exact=("answers = answers[:1]", *EXACT),
            share=("answers = answers[:1]", *OVERLAP),
        ),
        {"test-measures": 0.5},
        "the best counts",
    ),
    Variant(
        "precision",
        measures(share=tuple(line.replace("2 * common / (len(a) + len(b))", "common / len(a)") for line in OVERLAP)),
        {"test-measures": 1.25},
        "the values, also of words that occur twice",
    ),
    Variant(
        "recall",
        measures(share=tuple(line.replace("2 * common / (len(a) + len(b))", "common / len(b)") for line in OVERLAP)),
        {"test-measures": 1.25},
        "the values, also of words that occur twice",
    ),
    Variant(
        "the two is forgotten",
        measures(share=tuple(line.replace("2 * common", "common") for line in OVERLAP)),
        {"test-measures": 2.25},
        "all values but those that are 0 are half",
    ),
    Variant(
        "the words in common over all words",
        measures(
            share=tuple(
                line.replace("2 * common / (len(a) + len(b))", "common / (len(a) + len(b) - common)")
                for line in OVERLAP
            )
        ),
        {"test-measures": 1.25},
        "the Jaccard index is not F1",
    ),
    Variant(
        "F1 in per cent",
        measures(share=(*OVERLAP[:-1], "return 100 * best")),
        {"test-measures": 0.5},
        "right when divided by 100",
    ),
    Variant(
        "F1 of sets of words",
        measures(
            share=tuple(
                line.replace("(Counter(a) & Counter(b)).values()", "w in b for w in set(a)").replace(
                    "len(a) + len(b)", "len(set(a)) + len(set(b))"
                )
                for line in OVERLAP
            )
        ),
        {"test-measures": 0.5},
        "words count as often as they occur",
    ),
    Variant(
        "words in common counted in one direction",
        measures(
            share=tuple(line.replace("(Counter(a) & Counter(b)).values()", "w in b for w in a") for line in OVERLAP)
        ),
        {"test-measures": 0.5},
        "bora bora has two words in common with bora",
    ),
    Variant(
        "F1 of words in the same order",
        measures(
            share=(
                "from difflib import SequenceMatcher",
                "words = normalise(said)",
                "rights = [normalise(right) for right in answers or ['']]",
                "return max(SequenceMatcher(None, words, right, autojunk=False).ratio() for right in rights)",
            )
        ),
        {"test-measures": 0.5},
        "words are in common in any order",
    ),
    Variant(
        "F1 of letters",
        measures(
            share=tuple(
                line.replace(
                    "normalise(said), normalise(right)", "*map(' '.join, (normalise(said), normalise(right))),"
                )
                for line in OVERLAP
            )
        ),
        {"test-measures": 1.5},
        "letters in common are many in any two words",
    ),
    Variant(
        "F1 of words that are not normalised",
        measures(
            share=tuple(
                line.replace("normalise(said), normalise(right)", "said.split(), right.split()") for line in OVERLAP
            )
        ),
        {"test-measures": 0.5},
        "'The' is no answer; the other texts of the tests are small letters without articles",
    ),
    Variant(
        "F1: the right answers are not normalised",
        measures(share=tuple(line.replace("normalise(right)", "right.lower().split()") for line in OVERLAP)),
        {"test-measures": 0.5},
        "both are to be compared without capitals, articles and punctuation",
    ),
    Variant(
        "0 / 0 without a word in common",
        measures(
            share=(
                "best = []",
                "for right in answers or ['']:",
                "    a, b = normalise(said), normalise(right)",
                "    if not a or not b:",
                "        best.append(float(a == b))",
                "        continue",
                "    common = sum((Counter(a) & Counter(b)).values())",
                "    p, r = common / len(a), common / len(b)",
                "    best.append(2 * p * r / (p + r))",
                "return max(best)",
            )
        ),
        {"test-measures": 0.25},
        "an error there",
    ),
    Variant(
        "0 / 0 without a word in common, and without a word",
        measures(
            share=(
                "best = []",
                "for right in answers or ['']:",
                "    a, b = normalise(said), normalise(right)",
                "    common = sum((Counter(a) & Counter(b)).values())",
                "    p, r = common / len(a), common / len(b)",
                "    best.append(2 * p * r / (p + r))",
                "return max(best)",
            )
        ),
        {"test-measures": 0.75},
        "an error there, and where nothing is said or nothing is right, which is another rule",
    ),
    Variant(
        "0 as soon as a right answer has no word in common",
        measures(
            share=(
                *OVERLAP[:4],
                "    if a and b and common == 0:",
                "        return 0.0",
                *OVERLAP[4:],
            )
        ),
        {"test-measures": 0.25},
        "another one may have some",
    ),
    Variant(
        "the mean over the right answers",
        measures(
            share=(
                "values = []",
                *(
                    line.replace("best = max(best, ", "values.append(").replace("a, b =", "a, b =")
                    for line in OVERLAP[1:-1]
                ),
                "return sum(values) / len(values)",
            )
        ),
        {"test-measures": 0.5},
        "the best counts",
    ),
    Variant(
        "the best precision and the best recall, of any two right answers",
        measures(
            share=(
                "a, p, r = normalise(said), 0, 0",
                "for right in answers or ['']:",
                "    b = normalise(right)",
                "    common = sum((Counter(a) & Counter(b)).values())",
                "    p, r = max(p, common / len(a) if a else a == b), max(r, common / len(b) if b else a == b)",
                "return 2 * p * r / (p + r) if p + r else 0.0",
            )
        ),
        {"test-measures": 0.5},
        "both are those of one right answer",
    ),
    Variant(
        "the right answer with the most words in common",
        measures(
            share=(
                "a = Counter(normalise(said))",
                "rights = [Counter(normalise(right)) for right in answers or ['']]",
                "b = max(rights, key=lambda right: ((a & right).total(), -right.total()))",
                "total = a.total() + b.total()",
                "return 2 * (a & b).total() / total if total else 1.0",
            )
        ),
        {"test-measures": 0.5},
        "a shorter one with fewer may have a higher F1",
    ),
    Variant(
        "the words of all right answers together",
        measures(share=("answers = [' '.join(answers)]", *OVERLAP)),
        {"test-measures": 0.5},
        "each right answer stands for itself",
    ),
    Variant(
        "no answer is never right",
        measures(
            exact=("return float(any(normalise(said) == normalise(right) for right in answers))",),
            share=tuple(line.replace("answers or ['']", "answers") for line in OVERLAP),
        ),
        {"test-measures": 0.5},
        "questions without an answer have an empty list",
    ),
    Variant(
        "F1: an error where there is no answer",
        measures(
            share=(
                "return max(",
                "    2 * sum((Counter(normalise(said)) & Counter(normalise(right))).values())",
                "    / (len(normalise(said)) + len(normalise(right))) for right in answers",
                ")",
            )
        ),
        {"test-measures": 0.5},
        "the largest of nothing",
    ),
    Variant(
        "no answer right for every question",
        measures(
            exact=("if not said:", "    return 1.0", *EXACT),
            share=("if not said:", "    return 1.0", *OVERLAP),
        ),
        {"test-measures": 0.5},
        "silence would have the highest scores",
    ),
    Variant(
        "exact match with the measure of overlap",
        measures(exact=("return float(f1(said, answers) > 0)",)),
        {"test-measures": 1},
        "a word in common is enough for 1",
    ),
    Variant(
        "an empty list of answers filled",
        measures(
            exact=("if not answers:", "    answers.append('')", *EXACT),
            share=("if not answers:", "    answers.append('')", *OVERLAP),
        ),
        {"test-measures": 0.5},
        "the numbers are right, and the argument is changed",
    ),
    Variant(
        "the right answers replaced by their words",
        measures(
            share=(
                "for i, answer in enumerate(answers):",
                "    answers[i] = ' '.join(normalise(answer))",
                *OVERLAP,
            ),
        ),
        {"test-measures": 0.5},
        "the numbers are right, and the argument is changed",
    ),
]

VARIANTS = WORDS + MEASURES
