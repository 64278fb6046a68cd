"""Features of speech for Whisper: logarithms of mel energies every 10 ms, of clips that silence fills up. Numpy only.

Constants and steps: whisper/audio.py of openai/whisper, 06dc24a5 (log_mel_spectrogram, pad_or_trim); large-v3 has 128
mel bands instead of 80.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crowdperf.harness.media.audio_features import HOP_SAMPLES, mel_filters

FloatArray = npt.NDArray[np.float32]

FFT_SIZE = 400
_WINDOW = (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(FFT_SIZE) / FFT_SIZE)).astype(np.float32)
"""The periodic Hann window of torch.hann_window."""
_FLOOR = np.float32(1e-10)
_RANGE = np.float32(8.0)  # in powers of ten below the loudest


def log_mel(waveform: FloatArray, mel_count: int, frame_count: int) -> FloatArray:
    """Return float32[mel_count, frame_count] of a waveform of 16 kHz, -1..1, cut or filled with zeros to the frames."""
    signal = np.zeros(frame_count * HOP_SAMPLES, dtype=np.float32)
    count = min(len(signal), len(waveform))
    signal[:count] = waveform[:count]
    half = FFT_SIZE // 2
    mirrored = np.concatenate((signal[half:0:-1], signal, signal[-2 : -half - 2 : -1]))
    frames = np.lib.stride_tricks.sliding_window_view(mirrored, FFT_SIZE)[::HOP_SAMPLES][:frame_count] * _WINDOW
    spectrum = np.fft.rfft(frames, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32, copy=False)
    logarithms = np.log10(np.maximum(power @ mel_filters(mel_count, FFT_SIZE), _FLOOR))
    logarithms = np.maximum(logarithms, logarithms.max() - _RANGE)
    scaled: FloatArray = ((logarithms + np.float32(4.0)) / np.float32(4.0)).T
    return scaled
