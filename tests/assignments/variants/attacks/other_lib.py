"""A closed library is imported from the folder of packages by another name of it.

class: surroundings
"""

import sys

sys.path += [f"{sys.prefix}/lib64/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"]
from scipy.special import softmax
