"""The fault is in a process that multiprocessing started; sys.argv[1] says how."""
import multiprocessing
import sys

import torch


def work():
    torch.arange(3).gather(0, torch.tensor([3]))


if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    child.start()
    child.join()
    print("child ended with", child.exitcode)
