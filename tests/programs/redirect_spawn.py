"""A model and a tensor in another process: they are there on the devices where they were."""
import sys

import torch
import torch.multiprocessing
import torch.nn as nn

import redirect_run

redirect_run.load().install(lambda event, **fields: None, redirect_run.finding)


def work(rank, tensor, labels, model):
    parameter = next(model.parameters())
    print(tensor.device, labels.device, parameter.device, type(parameter).__name__, parameter.is_leaf,
          model(tensor).shape[0])
    sys.stdout.flush()


if __name__ == "__main__":
    operands = (torch.ones(3, 2).cuda(), torch.ones(3), nn.Linear(2, 2).cuda())
    torch.multiprocessing.spawn(work, args=operands, nprocs=1)
