"""The fault is in a DataLoader worker: reported, but the worker is not held."""
import torch
from torch.utils.data import DataLoader


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.arange(3).index_select(0, torch.tensor([i]))


if __name__ == "__main__":
    for _ in DataLoader(Rows(), num_workers=1):
        pass
