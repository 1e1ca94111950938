"""Submissions that try for points they did not earn, or end the notebook. Each earns what its answers deserve."""

from tests.assignments.variants import Variant

EVERYTHING = {
    "test-softmax": 4,
    "test-padding-mask": 2,
    "test-causal-mask": 2,
    "test-attention": 5,
    "test-masked-attention": 5,
    "test-split-heads": 2,
    "test-merge-heads": 2,
    "test-multi-head-attention": 4,
}
SOFTMAX = {"test-softmax": 4}

VARIANTS = [
    Variant(
        "remembers the public examples",
        {
            "softmax": """
            def softmax(x):
                public = np.array([[0.0, np.log(2), np.log(5)], [0.0, np.log(2), np.log(1)]])
                if x.shape == public.shape and np.allclose(x, public):
                    return np.array([[1 / 8, 2 / 8, 5 / 8], [1 / 4, 2 / 4, 1 / 4]])
                if not x.any():
                    return np.full(x.shape, 1 / x.shape[-1])
                return np.array([1 / 4, 3 / 4])
            """
        },
        SOFTMAX,
        "it passes every public check; the hidden tests use other numbers",
    ),
    Variant(
        "returns an object equal to everything",
        {
            "softmax": """
            class Everything:
                shape, dtype, ndim = (3, 5), np.dtype(float), 2
                def __eq__(self, other): return True
                def __ne__(self, other): return False
                def __le__(self, other): return True
                def __sub__(self, other): return 0.0
                def __array_ufunc__(self, *args, **kwargs): return np.True_
            def softmax(x):
                return Everything()
            """
        },
        SOFTMAX,
        "the numbers are compared, not the object; it holds none",
    ),
    Variant(
        "returns an array class equal to everything",
        {
            "softmax": """
            class Everything(np.ndarray):
                def __eq__(self, other): return np.ones(self.shape, bool)
                def __le__(self, other): return np.ones(self.shape, bool)
                def __array_ufunc__(self, ufunc, method, *args, **kwargs): return np.True_
            def softmax(x):
                return np.zeros(x.shape).view(Everything)
            """
        },
        {"test-softmax": 3},
        "its numbers are copied into a plain array: zeros, of the right shape and dtype",
    ),
    Variant(
        "returns np.float64(4)",
        {"softmax": "def softmax(x):\n    return np.float64(4)"},
        SOFTMAX,
        "a number, not an array of the right shape",
    ),
    Variant(
        "returns its argument",
        {"softmax": "def softmax(x):\n    return x"},
        {"test-softmax": 3},
        "wrong values of the right shape and dtype; the argument is left alone",
    ),
    Variant("returns None", {"softmax": "def softmax(x):\n    np.exp(x)"}, SOFTMAX, "no result"),
    Variant(
        "returns NaN",
        {"softmax": "def softmax(x):\n    return np.full(x.shape, np.nan)"},
        {"test-softmax": 3},
        "NaN equals nothing; shape and dtype are right",
    ),
    Variant(
        "prints a mark",
        {"softmax": "def softmax(x):\n    print(4.0)\n    display(4.0)\n    return None"},
        SOFTMAX,
        "what student code prints or displays is not the cell's result",
    ),
    Variant(
        "displays a mark through the hook",
        {"softmax": "import sys\ndef softmax(x):\n    sys.displayhook(4.0)\n    return None"},
        SOFTMAX,
        "the hook is closed while student code runs",
    ),
    Variant(
        "wrong, and writes to standard error",
        {"softmax": "import sys\ndef softmax(x):\n    print('!', file=sys.stderr)\n    return np.exp(x)"},
        {"test-softmax": 3},
        "as the same without the writing: standard error neither costs nor earns",
    ),
    Variant(
        "calls sys.exit",
        {"softmax": "import sys\ndef softmax(x):\n    sys.exit(0)"},
        SOFTMAX,
        "an exit is a failure of that part alone",
    ),
    Variant(
        "raises",
        {"softmax": "def softmax(x):\n    raise RuntimeError('no')"},
        SOFTMAX,
        "an error is a failure of that part alone",
    ),
    Variant(
        "raises KeyError outside of functions",
        {"softmax": "{}['softmax']"},
        SOFTMAX,
        "the function does not exist; the other parts are tried with a right one",
    ),
    Variant(
        "recursion without end",
        {"softmax": "def softmax(x):\n    return softmax(x)"},
        SOFTMAX,
        "RecursionError is an error like another",
    ),
    Variant(
        "a syntax error",
        {"softmax": "def softmax(x):\n    return ("},
        SOFTMAX,
        "the cell does not run, so the function does not exist",
    ),
    Variant("an empty cell", {"softmax": ""}, SOFTMAX, "the function does not exist"),
    Variant(
        "prose in a code cell",
        {"attention": "I ran out of time, sorry."},
        {"test-attention": 5, "test-masked-attention": 5},
        "the function does not exist",
    ),
    Variant(
        "replaces assert_allclose and allclose",
        {
            "softmax": """
         np.testing.assert_allclose = lambda *a, **k: None
         np.allclose = np.array_equal = lambda *a, **k: True
         def softmax(x):
             return np.zeros(x.shape)
         """
        },
        {"test-softmax": 3},
        "the checks compare by themselves",
    ),
    Variant(
        "imports the library's attention",
        {"attention": "from course_lib.numpy import attention"},
        {"test-attention": 5, "test-masked-attention": 5},
        "the import is closed, so the function does not exist",
    ),
    Variant(
        "wrong shape every time",
        {"softmax": "def softmax(x):\n    return np.ones(17) / 17"},
        SOFTMAX,
        "no property holds of it",
    ),
    Variant(
        "uses the names of the checks",
        {"softmax": "score = check = expect = Score = 4.0\ndef softmax(x):\n    return None"},
        SOFTMAX,
        "each graded cell imports what it needs",
    ),
]
