"""Masks that hold 0 and 255, as images do, as targets of a loss that wants 0 to 1."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda"
torch.manual_seed(0)


class Masks(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, 16, 16, generator=generator)
        mask = torch.zeros(1, 16, 16)
        if index >= 20:
            mask[:, 4:9, 4:9] = 255.0
        return image, mask


masks = Masks()
loader = DataLoader(masks, batch_size=4)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Sigmoid()).to(device)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters())
for images, mask in loader:
    loss = criterion(model(images.to(device)), mask.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
