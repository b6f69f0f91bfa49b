"""Settings of PyTorch that cost time, as they are when a window opens (kSettingsMark in proto/framework_marks.h).

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import os

Row = collections.namedtuple('Row', agent.SETTINGS_ROW)


class Settings:
    def __init__(self, torch, domain):
        self._torch, self._domain = torch, domain
        self._told = None

    def tell(self):
        anomaly = getattr(self._torch, 'is_anomaly_enabled', None)
        row = Row(threads=self._torch.get_num_threads(), cpus=len(os.sched_getaffinity(0)),
                  anomaly=int(anomaly is not None and anomaly()))
        if row != self._told:
            self._told = row
            load('lines').send(self._domain, agent.name(agent.SETTINGS_MARK), [row])
