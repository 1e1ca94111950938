"""What holds for every test: no window opens, and no model hub is asked."""

import os

os.environ["MPLBACKEND"] = "agg"
os.environ["HF_HUB_OFFLINE"] = "1"
