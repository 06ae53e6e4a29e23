"""A job of the Lightning Trainer, in memory and without a network; prints what its own clock says."""

import json
import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

spent = {"training_steps": 0.0, "validation_steps": 0.0, "fit": 0.0}


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, _index):
        began = time.perf_counter()
        time.sleep(0.03)
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        spent["training_steps"] += time.perf_counter() - began
        return loss

    def validation_step(self, batch, _index):
        began = time.perf_counter()
        time.sleep(0.05)
        self.log("loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))
        spent["validation_steps"] += time.perf_counter() - began

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def loader(batches, seed):
    torch.manual_seed(seed)
    return DataLoader(TensorDataset(torch.randn(4 * batches, 8), torch.randn(4 * batches, 1)), batch_size=4)


trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
    callbacks=[ModelCheckpoint(dirpath=sys.argv[1], save_top_k=-1)],
)
began = time.perf_counter()
trainer.fit(Module(), loader(20, 1), loader(8, 2))
spent["fit"] = time.perf_counter() - began
print(json.dumps({"step": trainer.global_step, **spent}))
