# run: torchrun --standalone --nproc-per-node 2 train.py
"""Sharded tables trained by a TorchRec pipeline that reads ahead: the lines for ettwatch are marked.

    ett run -- torchrun --standalone --nproc-per-node 2 train.py
    ett account DIR      # DIR as printed by ett run

Without `ett run` the same program trains as ever and writes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.datasets.utils import Batch
from torchrec.distributed import DistributedModelParallel, TrainPipelineSparseDist
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter

from ett_trainer_hooks import Recorder  # line 0: the imports
from ett_trainer_hooks.adapters.torchrec import ObservedPipeline

FEATURES = ["user", "item", "shop"]
ROWS = 1000
BATCH_SIZE = 128


def batches(steps: int, rank: int) -> Iterator[Batch]:
    """Made-up clicks: whoever has an even number clicks."""
    draw = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        ids = torch.randint(ROWS, (len(FEATURES), BATCH_SIZE), generator=draw)
        lengths = torch.ones(ids.numel(), dtype=torch.int32)
        yield Batch(
            dense_features=torch.randn(BATCH_SIZE, 4, generator=draw),
            sparse_features=KeyedJaggedTensor(FEATURES, ids.reshape(-1), lengths=lengths),
            labels=(ids[0] % 2 == 0).float(),
        )


def build() -> tuple[torch.nn.Module, CombinedOptimizer]:
    """A small DLRM whose tables are spread over the ranks."""
    torch.manual_seed(0)
    tables = [
        EmbeddingBagConfig(name=name, embedding_dim=16, num_embeddings=ROWS, feature_names=[name])
        for name in FEATURES
    ]
    dlrm = DLRM(
        embedding_bag_collection=EmbeddingBagCollection(tables=tables, device=torch.device("meta")),
        dense_in_features=4,
        dense_arch_layer_sizes=[32, 16],
        over_arch_layer_sizes=[32, 1],
    )
    model = DistributedModelParallel(DLRMTrain(dlrm), device=torch.device("cpu"))
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(model.named_parameters())),
        lambda parameters: torch.optim.Adagrad(parameters, lr=0.05),
    )
    return model, CombinedOptimizer([model.fused_optimizer, dense])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    recorder = Recorder.from_env()  # line 1
    dist.init_process_group("gloo")
    with recorder.phase("model_init"):  # optional: a part of the start with a name
        model, optimizer = build()
    pipeline = TrainPipelineSparseDist(model, optimizer, torch.device("cpu"))
    pipeline = ObservedPipeline(recorder, pipeline, samples=BATCH_SIZE)  # line 2
    iterator = batches(arguments.steps, dist.get_rank())
    loss = torch.tensor(float("nan"))
    with contextlib.suppress(StopIteration):  # raised once every batch is trained on
        while True:
            loss, *_ = pipeline.progress(iterator)
    if dist.get_rank() == 0:
        print(f"{recorder.step} steps, loss {float(loss.detach()):.4f}")
    dist.destroy_process_group()
    recorder.close()  # says that it ended well; `ett run` finds out by itself


if __name__ == "__main__":
    main()
