"""An error that has nothing to do with tensors: told of, not held."""
import torch

{}["missing"]
