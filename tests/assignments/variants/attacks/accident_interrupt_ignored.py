"""A loop without end catches everything, interrupts too.

class: accidents
cell: padding-mask
others: solved
loses: test-padding-mask 2
"""


def padding_mask(ids, pad_id=0):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
