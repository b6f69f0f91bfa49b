"""A server as vLLM's: a thread takes requests and writes a few tokens for each, a forward a token, while the main
thread waits. The job sleeps but for a window: `serves.py RANKTAP RUN`. Prints how many forwards were before, in and
after it."""
import queue
import subprocess
import sys
import threading

import torch
from torch import nn

TOKENS = 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)

    def forward(self, tokens):
        return self.head(self.embedding(tokens)).argmax(-1)


class Server:
    def __init__(self):
        torch.manual_seed(0)
        self._model = Model().eval()
        self._requests, self._answers = queue.Queue(), queue.Queue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                tokens = self._requests.get()
                for _ in range(TOKENS):
                    tokens = self._model(tokens)
                self._answers.put(tokens.tolist())

    def ask(self, count):
        for number in range(count):
            self._requests.put(torch.tensor([number % 32]))
            self._answers.get()
        return count * TOKENS


def main():
    ranktap, run = sys.argv[1:3]
    server = Server()
    before = server.ask(5)
    subprocess.run([ranktap, 'start', run], check=True, stdout=subprocess.DEVNULL)
    inside = server.ask(50)
    subprocess.run([ranktap, 'stop', run], check=True, stdout=subprocess.DEVNULL)
    print(before, inside, server.ask(5))


if __name__ == '__main__':
    main()
