"""Seeded sounds whose features were recorded from torch and librosa (rnnt_features.npz, test_model_rnnt.py)."""

import numpy as np

COUNT = 40


def waveform(number: int) -> np.ndarray:
    """float32[samples] as of a 16-bit file: tones, noise of many strengths, silence, all ways to end within a frame."""
    random = np.random.RandomState(number)
    sample_count = (
        int(random.randint(2000, 60_000)) if number % 4 else 480 * int(random.randint(5, 120)) + 160 * (number % 3)
    )
    time_s = np.arange(sample_count) / 16_000
    sound = 10.0 ** random.uniform(-4, -1) * random.standard_normal(sample_count)
    for _ in range(4):
        sound += random.uniform(0.01, 0.2) * np.sin(
            2 * np.pi * random.uniform(60, 7000) * time_s + random.uniform(0, 6)
        )
    if number % 7 == 0:
        sound[sample_count // 3 : sample_count // 2] = 0
    return (np.round(np.clip(sound, -1, 1) * 32767) / 32768).astype(np.float32)
