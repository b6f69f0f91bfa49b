"""Trains until PyTorch has had a callback at operators in two steps, which the default schedule chose. Prints how many
steps came before each."""
from asleep import MOST_STEPS, Training, observes_operators


def main():
    training, before = Training(), []
    while len(before) < 2 and training.steps < MOST_STEPS:
        training.step()
        if observes_operators():
            before.append(training.steps)
    training.step()
    print(*before)


if __name__ == '__main__':
    main()
