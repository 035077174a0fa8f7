"""One process of a data parallel training, with nccl."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn

os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl", init_method="env://")
torch.cuda.set_device(0)
net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).cuda()
net = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net), device_ids=[0])
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    loss = net(torch.randn(5, 4)).pow(2).mean()  # it moves its input itself
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach().clone()
dist.all_reduce(total)
dist.barrier(device_ids=[0])
everyone = [torch.zeros_like(total)]
dist.all_gather(everyone, total)
print(dist.get_backend(), total.device, bool(everyone[0] == loss))
dist.destroy_process_group()
