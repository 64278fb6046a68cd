"""Architectures in plain PyTorch, one file each; `base` says what one is. Only this folder and backends/pytorch.py
import torch."""
