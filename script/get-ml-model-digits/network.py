"""Fits the digits network: k-means patch filters, threshold, pooling and a logistic head. Pure: arrays in, arrays out.

The network, for an image of 8 x 8 pixels (0..1), padded by one pixel of paper on each side:

    3x3 patches --filters--> 192 maps of 8x8 --minus threshold, at least 0--> largest of each 2x2 --> 192 maps of 4x4
    --> 3072 features --> 10 logits

The filters are the centres that k-means finds among whitened patches of the training images (Coates, Ng, Lee 2011, "An
analysis of single-layer networks in unsupervised feature learning"). Whitening is linear, so it is folded into the
filters and their bias, and the whole network is one convolution, one pooling and one matrix product.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

PATCH_SIZE = 3
PADDING = 1
POOL_SIZE = 2


@dataclass(frozen=True)
class FitSettings:
    """What decides the fit, together with the training images.

    Chosen on 2026-11-21 by five-fold cross-validation inside the training part, repeated with three seeds: 99.53 %
    right; 32 to 192 filters of 3x3 or 5x5 with thresholds 0.3 to 0.8 and inverse regularisation 0.1 and 0.3 gave 98.66
    to 99.53 %. The validation part took no part in the choice. 128 filters do as well; 192 were taken so that an image
    costs some microseconds, like a small real model, and not less than LoadGen itself.
    """

    seed: int = 20261121
    filter_count: int = 192
    whitening_epsilon: float = 0.1
    threshold: float = 0.8
    patch_count: int = 30000
    minimum_patch_deviation: float = 0.05
    inverse_regularisation: float = 0.1
    maximum_iterations: int = 1000


@dataclass(frozen=True)
class Network:
    """Weights, all float32: filters [k, 1, 3, 3], filter_bias [k], head [16 k, 10] (channel-major), head_bias [10]."""

    filters: np.ndarray
    filter_bias: np.ndarray
    head: np.ndarray
    head_bias: np.ndarray


def as_input(images: np.ndarray) -> np.ndarray:
    """`uint8[n, 8, 8]` pixels (0..16) as the network's input `float32[n, 1, 8, 8]` (0..1)."""
    return (images.astype(np.float32) / np.float32(16))[:, np.newaxis]


def patches_of(inputs: np.ndarray) -> np.ndarray:
    """Every 3x3 patch of the padded images: `float32[n, 8, 8, 9]`."""
    margin = (PADDING, PADDING)
    padded = np.pad(inputs[:, 0], ((0, 0), margin, margin))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (PATCH_SIZE, PATCH_SIZE), axis=(1, 2))
    return windows.reshape(*windows.shape[:3], PATCH_SIZE * PATCH_SIZE)


def whitening_of(patches: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean `[9]` and whitening matrix `[9, 9]` of `patches [m, 9]`; `epsilon` keeps weak directions from blowing up."""
    mean = patches.mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov((patches - mean).T))
    return mean, (directions / np.sqrt(variances + epsilon)) @ directions.T


def fit_filters(inputs: np.ndarray, settings: FitSettings) -> tuple[np.ndarray, np.ndarray]:
    """Filters `float64[k, 9]` and their bias `[k]`: k-means centres of whitened patches, threshold included."""
    patches = patches_of(inputs).reshape(-1, PATCH_SIZE * PATCH_SIZE).astype(np.float64)
    patches = patches[patches.std(axis=1) > settings.minimum_patch_deviation]
    chosen = np.random.default_rng(settings.seed).permutation(len(patches))[: settings.patch_count]
    patches = patches[chosen]
    mean, whitening = whitening_of(patches, settings.whitening_epsilon)
    directions = (patches - mean) @ whitening
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    clustering = MiniBatchKMeans(settings.filter_count, random_state=settings.seed, n_init=3, batch_size=2048)
    centres = clustering.fit(directions).cluster_centers_
    filters = centres / np.linalg.norm(centres, axis=1, keepdims=True) @ whitening
    return filters, -(filters @ mean) - settings.threshold


def features_of(inputs: np.ndarray, filters: np.ndarray, filter_bias: np.ndarray) -> np.ndarray:
    """Features `[n, 16 k]` in the order of an NCHW tensor `[n, k, 4, 4]` laid flat."""
    responses = np.maximum(patches_of(inputs) @ filters.T + filter_bias, 0)
    count, height, width, channels = responses.shape
    blocks = responses.reshape(count, height // POOL_SIZE, POOL_SIZE, width // POOL_SIZE, POOL_SIZE, channels)
    pooled = blocks.max(axis=(2, 4))
    return pooled.transpose(0, 3, 1, 2).reshape(count, -1)


def fit_network(inputs: np.ndarray, labels: np.ndarray, settings: FitSettings) -> Network:
    """The network fitted to `inputs float32[n, 1, 8, 8]` with `labels [n]` (0..9).

    One thread, so that the same libraries on the same kind of processor give the same weights at each run.
    """
    with threadpool_limits(limits=1):
        filters, filter_bias = fit_filters(inputs, settings)
        features = features_of(inputs, filters, filter_bias)
        scale = features.std()
        head = LogisticRegression(C=settings.inverse_regularisation, max_iter=settings.maximum_iterations)
        head.fit(features / scale, labels)
    return Network(
        filters=filters.reshape(-1, 1, PATCH_SIZE, PATCH_SIZE).astype(np.float32),
        filter_bias=filter_bias.astype(np.float32),
        head=(head.coef_.T / scale).astype(np.float32),
        head_bias=head.intercept_.astype(np.float32),
    )
