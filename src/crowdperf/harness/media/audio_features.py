"""Features of speech for RNN-T: from a waveform to normalised, spliced log-mel energies. Numpy only.

Formulae and constants are those of the reference, speech_recognition/rnnt/pytorch/parts/features.py with the section
`input_eval` of pytorch/configs/rnnt.toml (mlcommons/inference, tag v4.0). Two of its habits matter and are kept: dither
is no noise but its variance, added to each power value; and a spliced frame that reaches beyond the end has zeros there
(after the logarithm). One utterance is worked on at a time, so that what comes out never depends on its batch.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

SAMPLE_RATE_HZ = 16_000
WINDOW_SAMPLES = 320  # 20 ms
HOP_SAMPLES = 160  # 10 ms
FFT_SIZE = 512
MEL_COUNT = 80
SPLICED_FRAMES = 3
FEATURE_COUNT = MEL_COUNT * SPLICED_FRAMES
MIN_SAMPLES = FFT_SIZE // 2 + 1
"""A shorter waveform cannot be mirrored at its ends."""

_PREEMPHASIS = np.float32(0.97)
_DITHER_POWER = np.float32(1e-5**2)
_LOG_FLOOR = np.float32(1e-20)
_STD_FLOOR = np.float32(1e-5)


def _hertz_of_mel(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Slaney's scale: linear up to 1,000 Hz (15 mel), then 27 mel for a factor of 6.4."""
    linear = mel * (200.0 / 3.0)
    return np.where(mel < 15.0, linear, 1000.0 * np.exp((mel - 15.0) * (np.log(6.4) / 27.0)))


@lru_cache(maxsize=4)
def mel_filters(mel_count: int = MEL_COUNT, fft_size: int = FFT_SIZE) -> FloatArray:
    """Return float32[fft_size / 2 + 1, mel_count]: triangles of equal area over 0 to 8,000 Hz, as librosa.filters.mel
    has by default."""
    highest_mel = 15.0 + 27.0 * np.log(SAMPLE_RATE_HZ / 2 / 1000.0) / np.log(6.4)
    corners_hz = _hertz_of_mel(np.linspace(0.0, highest_mel, mel_count + 2))
    bins_hz = np.linspace(0.0, SAMPLE_RATE_HZ / 2, fft_size // 2 + 1)
    widths = np.diff(corners_hz)
    distance = corners_hz[:, None] - bins_hz[None, :]
    rising = -distance[:-2] / widths[:-1, None]
    falling = distance[2:] / widths[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    triangles *= (2.0 / (corners_hz[2:] - corners_hz[:-2]))[:, None]
    return np.ascontiguousarray(triangles.T, dtype=np.float32)


@lru_cache(maxsize=1)
def _window() -> FloatArray:
    """Return the Hann window whose both ends are zero, float32[320]."""
    return np.hanning(WINDOW_SAMPLES).astype(np.float32)


def frame_count(sample_count: int) -> int:
    """Return the number of spliced frames (30 ms each) of a waveform."""
    hops = -(-sample_count // HOP_SAMPLES)
    return -(-hops // SPLICED_FRAMES)


def log_mel(waveform: FloatArray) -> FloatArray:
    """Return float32[1 + samples // 160, 80]: logarithms of mel energies, one row every 10 ms.

    `waveform` is float32[samples], -1..1, at least MIN_SAMPLES long.
    """
    signal = waveform.copy()
    signal[1:] -= _PREEMPHASIS * waveform[:-1]
    half = FFT_SIZE // 2
    mirrored = np.concatenate((signal[half:0:-1], signal, signal[-2 : -half - 2 : -1]))
    # The window lies in the middle of the transform. A power spectrum does not depend on where in it the samples
    # stand, so the 96 zeros on each side are left out and rfft adds them behind.
    margin = (FFT_SIZE - WINDOW_SAMPLES) // 2
    windows = np.lib.stride_tricks.sliding_window_view(mirrored[margin:], WINDOW_SAMPLES)
    frames = windows[::HOP_SAMPLES][: 1 + len(waveform) // HOP_SAMPLES] * _window()
    spectrum = np.fft.rfft(frames, n=FFT_SIZE, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32, copy=False)
    energies: FloatArray = (power + _DITHER_POWER) @ mel_filters()
    logarithms: FloatArray = np.log(energies + _LOG_FLOOR)
    return logarithms


def features(waveform: FloatArray) -> FloatArray:
    """Return float32[frame_count(samples), 240]: three log-mel rows side by side, each column with mean 0 and standard
    deviation 1 over the utterance. An utterance of one frame, which has no deviation, is all zeros."""
    rows = log_mel(waveform)
    missing = -len(rows) % SPLICED_FRAMES
    spliced = np.concatenate((rows, np.zeros((missing, MEL_COUNT), np.float32))).reshape(-1, FEATURE_COUNT)
    kept = spliced[: frame_count(len(waveform))]
    if len(kept) < 2:
        return np.zeros_like(kept)
    mean = kept.mean(axis=0, dtype=np.float64).astype(np.float32)
    deviation = kept.std(axis=0, ddof=1, dtype=np.float64).astype(np.float32)
    normalised: FloatArray = (kept - mean) / (deviation + _STD_FLOOR)
    return normalised
