"""As asleep.py, by Lightning: `lightning_asleep.py RANKTAP RUN`. Prints whether Lightning's own methods are in place
and how many functions of ours a step runs, asleep, awake and asleep again."""
import subprocess
import sys

import lightning.pytorch as lightning
import torch
from lightning.pytorch.strategies import Strategy
from torch import nn

MOST_STEPS = 100_000


def is_asleep():
    return hasattr(Strategy.training_step, '__code__') and nn.Module.__dict__['__call__'] is nn.Module._wrapped_call_impl


class Batches:
    """No DataLoader, whose iterator is ours from the first recording on."""

    def __iter__(self):
        return iter([torch.ones(1, 4)] * 1000)


class LitModel(lightning.LightningModule):
    def __init__(self, ranktap, run):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self._command = ranktap, run
        self._story = self.story()
        next(self._story)

    def control(self, verb):
        ranktap, run = self._command
        subprocess.run([ranktap, verb, run], check=True, stdout=subprocess.DEVNULL)

    def story(self):
        """Goes on at the beginning of each batch."""
        for _ in range(4):
            yield
        yield from self.count_calls()
        self.control('start')
        while is_asleep():
            yield
        print('awake')
        for _ in range(6):
            yield
        self.control('stop')
        while not is_asleep():
            yield
        yield
        yield from self.count_calls()
        self.trainer.should_stop = True
        while True:
            yield

    def count_calls(self):
        names = []
        sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_filename) if event == 'call' else None)
        yield
        sys.setprofile(None)
        print('asleep', is_asleep(), sum(name.startswith('<ranktap/') for name in names))

    def on_train_batch_start(self, batch, index):
        next(self._story)

    def training_step(self, batch, index):
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def main():
    torch.set_num_threads(1)
    trainer = lightning.Trainer(max_steps=MOST_STEPS, accelerator='cpu', devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                min_epochs=0)
    trainer.fit(LitModel(*sys.argv[1:3]), Batches())


if __name__ == '__main__':
    main()
