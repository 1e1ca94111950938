"""PyTorch's own ways into the network: what it downloads, and what its processes find each other by.

class: surroundings
on: attention-for-an-rnn
cell: additive-scores
"""

import datetime

import torch
import torch.distributed
import torch.hub

for way in (
    lambda: torch.hub.download_url_to_file(f"http://127.0.0.1:{PORT}/answers", "answers"),
    lambda: torch.hub.load_state_dict_from_url(f"http://127.0.0.1:{PORT}/answers"),
    lambda: torch.distributed.TCPStore("127.0.0.1", PORT, timeout=datetime.timedelta(seconds=1)),
    lambda: torch.distributed.TCPStore("127.0.0.1", 53, timeout=datetime.timedelta(seconds=1)),
):
    try:
        print("leaked", way())
    except BaseException:
        pass
