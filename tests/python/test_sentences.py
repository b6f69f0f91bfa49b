"""What holds of every table of every golden input, read off the golden answers: bounds, and windows that agree."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = sorted(ROOT.glob('tests/golden/*/*.tables.txt'))

# A change is no share, a bound of a clock's offset no length, and a gap may begin before the first event.
MAY_EXCEED = {('diff', 'change_percent')}
MAY_BE_NEGATIVE = {('diff', 'diff_ns'), ('align', 'low_ns'), ('gaps', 'start_ns')}


def tables(path):
    """{table: (title, [(column, unit)], [row])}"""
    found = {}
    columns = rows = None
    for line in path.read_text().splitlines():
        if heading := re.match(r'== (.+?) \| (.*)', line):
            columns, rows = [], []
            found[heading[1]] = (heading[2], columns, rows)
        elif line.startswith('['):
            rows.append(json.loads(line))
        elif rows is not None and not columns and not line.startswith('note: '):
            columns.extend(re.findall(r'(\S+):(\S+)', line))
    return found


def values(path):
    """(table, column, unit, value) of each cell with a number"""
    for name, (_, columns, rows) in tables(path).items():
        for row in rows:
            for (column, unit), value in zip(columns, row):
                if isinstance(value, (int, float)):
                    yield name, column, unit, value


class Sentences(unittest.TestCase):
    def test_no_share_is_over_100_percent_and_no_time_is_negative(self):
        cells = 0
        for path in GOLDEN:
            for table, column, unit, value in values(path):
                cells += unit in ('percent', 'ns')
                if unit == 'percent' and (table, column) not in MAY_EXCEED:
                    self.assertLessEqual(value, 100 + 1e-9, f'{path.name}: {table}, {column}')
                if unit in ('percent', 'ns') and (table, column) not in MAY_EXCEED | MAY_BE_NEGATIVE:
                    self.assertGreaterEqual(value, 0, f'{path.name}: {table}, {column}')
        self.assertGreater(cells, 10_000)

    def test_the_shares_of_a_waterfall_are_of_one_window(self):
        checked = 0
        for path in GOLDEN:
            of = tables(path)
            for name in ('waterfall', 'key-figures', 'verdict'):
                if name not in of:
                    break
            else:
                _, columns, rows = of['waterfall']
                if not rows:
                    continue
                share = [column for column, _ in columns].index('share_percent')
                by_cause = {row[0]: row[share] for row in rows}
                self.assertAlmostEqual(sum(by_cause.values()), 100, 3, path.name)
                figures = dict(zip((column for column, _ in of['key-figures'][1]), of['key-figures'][2][0]))
                communicates = sum(by_cause.get(f'exposed {what}', 0) for what in ('transfer', 'wait', 'communication'))
                self.assertAlmostEqual(figures['exposed_comm_percent'], communicates, 3, path.name)
                if figures['busy_percent'] is not None:
                    busy = by_cause.get('compute', 0) + communicates + by_cause.get('memory copy', 0)
                    self.assertAlmostEqual(figures['busy_percent'], busy, 3, path.name)
                checked += 1
        self.assertGreater(checked, 20)

    def test_a_device_that_is_said_to_be_little_used_is_as_busy_as_the_waterfall_says(self):
        checked = 0
        for path in GOLDEN:
            of = tables(path)
            if 'insights' not in of or 'waterfall-by-rank' not in of:
                continue
            said = [row for row in of['insights'][2] if row[0] == 'low-utilization']
            devices = {row[1] for row in of['usage'][2]} if 'usage' in of else set()
            for row in said:
                busy = re.search(r'on the whole it is busy ([0-9.]+) %', row[-2])
                rank = row[[column for column, _ in of['insights'][1]].index('rank')]
                of_rank = {cause: share for number, cause, _, share in of['waterfall-by-rank'][2] if number == rank}
                works = sum(of_rank.get(cause, 0) for cause in
                            ('compute', 'exposed transfer', 'exposed communication', 'exposed wait', 'memory copy'))
                numbers = [line[0] for line in of['waterfall-by-rank'][2] if line[1] == 'compute']
                if not busy or len(devices) > 1 or numbers.count(rank) != 1:
                    continue
                checked += 1
                self.assertAlmostEqual(float(busy[1]), works, delta=0.1, msg=f'{path.name}: {row[-2]}')
        self.assertGreater(checked, 3)

    def test_nine_of_ten_verdicts_say_what_is_known_of_their_input(self):
        table = (ROOT / 'tests/golden/verdicts.md').read_text()
        rows = re.finditer(r'^\| ([\w.-]+) \| `(.+?)` \|', table, re.M)
        wanted = {row[1]: row[2].replace('\\|', '|') for row in rows}
        wrong = []
        for name, words in wanted.items():
            path = next(path for path in GOLDEN if path.name == f'{name}.tables.txt')
            title = tables(path)['verdict'][0]
            if not re.search(words, title):
                wrong.append(f'{name}: {title}')
        self.assertGreater(len(wanted), 23)
        self.assertLessEqual(10 * len(wrong), len(wanted), wrong)


if __name__ == '__main__':
    unittest.main()
