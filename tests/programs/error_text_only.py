"""An error with torch's own words, raised where no tensor can be looked at."""
import torch

assert torch
raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x3 and 5x2)")
