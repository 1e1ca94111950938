"""What stands for all combinations has every pair of values."""

from itertools import combinations, product

from tests.support.pairwise import combined

CHOICES = {"kind": ["rnn", "gru", "lstm"], "masked": [False, True], "both_ways": [False, True], "fused": [False, True]}


def test_every_pair_of_values_is_in_one_of_a_few_combinations():
    found = combined(**CHOICES)
    for (i, a), (j, b) in combinations(enumerate(CHOICES.values()), 2):
        assert {(row[i], row[j]) for row in found} == set(product(a, b))
    assert len(found) == len(set(found)) <= 7 and found == combined(**CHOICES)


def test_two_choices_are_all_combined():
    assert sorted(combined(a=[1, 2], b=[3, 4, 5])) == list(product([1, 2], [3, 4, 5]))
