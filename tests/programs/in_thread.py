"""An error in a thread other than the main one; the program goes on."""
import threading

import torch

thread = threading.Thread(target=lambda: torch.zeros(2)[torch.tensor([2])])
thread.start()
thread.join()
print("main goes on")
