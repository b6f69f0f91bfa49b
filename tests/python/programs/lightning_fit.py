"""Trains, validates, tests and predicts with a LightningModule: `lightning_fit.py PACKAGE WAY`. PACKAGE:
lightning.pytorch or pytorch_lightning. Prints each loss, and a sum of what was predicted.

WAY: layers (steps call the layers, and one of a second model raises), accumulate (steps call the module), manual
(the step runs the backward pass and the optimizer), compile, ddp (two ranks).
"""
import importlib
import sys

import torch
from torch import nn

lightning = importlib.import_module(sys.argv[1])
WAY = sys.argv[2]
EPOCHS, BATCHES, BATCH = 2, 4, 2


def say(what, rank, loss):
    sys.stdout.write(f'{what} {rank} {loss.item().hex()}\n')  # whole: ranks share it


class LitModel(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.decoder = nn.Linear(16, 1)

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def loss(self, batch):
        x, = batch
        output = self.decoder(self.encoder(x)) if WAY == 'layers' else self(x)
        return output.square().mean()

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        return self.loss(batch)

    def test_step(self, batch, index):
        return self.loss(batch)

    def predict_step(self, batch, index):
        return self.loss(batch)

    def on_train_batch_end(self, outputs, batch, index):
        say('loss', self.global_rank, outputs['loss'])

    def on_validation_batch_end(self, outputs, batch, index):
        say('validation', self.global_rank, outputs)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class FailingModel(LitModel):
    def training_step(self, batch, index):
        if index == 2:
            raise ValueError('of the program')
        return self.loss(batch)


class ManualModel(LitModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        loss = self.loss(batch)
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return loss


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(BATCHES * BATCH * (2 if WAY == 'ddp' else 1), 8, generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=BATCH)


def train(model):
    options = {'devices': 2, 'strategy': 'ddp'} if WAY == 'ddp' else {'devices': 1}
    trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator='cpu', logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, accumulate_grad_batches=2 if WAY == 'accumulate' else 1,
                                **options)
    trainer.fit(model, batches(1), batches(2))
    trainer.test(model, batches(3), verbose=False)
    if WAY != 'ddp':
        say('predicted', 0, sum(trainer.predict(model, batches(4))))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ManualModel() if WAY == 'manual' else LitModel()
    train(torch.compile(model, backend='aot_eager') if WAY == 'compile' else model)
    if WAY == 'layers':
        train(FailingModel())


if __name__ == '__main__':
    main()
