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
                finding = row[[column for column, _ in of['insights'][1]].index('finding')]
                busy = re.search(r'on the whole it is busy ([0-9.]+) %', finding)
                rank = row[[column for column, _ in of['insights'][1]].index('rank')]
                of_rank = {cause: share for number, cause, _, share in of['waterfall-by-rank'][2] if number == rank}
                works = sum(of_rank.get(cause, 0) for cause in
                            ('compute', 'exposed transfer', 'exposed communication', 'exposed wait', 'memory copy'))
                numbers = [line[0] for line in of['waterfall-by-rank'][2] if line[1] == 'compute']
                if not busy or len(devices) > 1 or numbers.count(rank) != 1:
                    continue
                checked += 1
                self.assertAlmostEqual(float(busy[1]), works, delta=0.1, msg=f'{path.name}: {finding}')
        self.assertGreater(checked, 3)

    def test_all_tables_are_of_the_same_steps(self):
        """Those that *steps* does not call warm-up: their number in other tables, and their lengths in the waterfall."""
        checked = 0
        for path in GOLDEN:
            of = tables(path)
            rows = of['steps'][2] if 'steps' in of else []
            columns = [column for column, _ in of['steps'][1]] if rows else []
            if not rows or '\nand .total_ns' in path.read_text().split('== steps |')[1].split('\n== ')[0]:
                continue
            rows = [dict(zip(columns, row)) for row in rows]
            counted = [row for row in rows if row['warm_up'] != 'yes']
            notes = path.read_text()
            for name in ('waterfall', 'waterfall-by-rank', 'verdict'):
                section = notes.split(f'\n== {name} |')[1].split('\n== ')[0] if name in of else ''
                for steps in re.findall(r'^note: (?:figures are of )?(\d+) steps? of \d+ ranks? by', section, re.M):
                    self.assertEqual(int(steps), len(counted), f'{path.name}: {name}')
                    checked += 1
            if 'pace' in of and of['pace'][2]:  # without times it has none
                pace = [dict(zip((column for column, _ in of['pace'][1]), row)) for row in of['pace'][2]]
                self.assertEqual([row['instance'] for row in pace], sorted({row['step'] for row in counted}), path.name)
                for row in pace:
                    self.assertEqual(row['ranks'], [step['step'] for step in counted].count(row['instance']), path.name)
            by_rank = {}
            for row in of['waterfall-by-rank'][2]:
                by_rank[row[0]] = by_rank.get(row[0], 0) + row[2]
            for rank, mean in by_rank.items():
                lengths = [row['total_ns'] for row in counted if row['rank'] == rank]
                self.assertLessEqual(abs(mean * len(lengths) - sum(lengths)), 20 * len(lengths), path.name)  # causes are rounded
        self.assertGreater(checked, 20)

    def test_nine_of_ten_verdicts_say_what_is_known_of_their_input(self):
        claims, none = (
            {row[1]: row[2].strip('` ').replace('\\|', '|') for row in re.finditer(r'^\| ([\w.-]+) \| (`.+?`|) ?\|', part, re.M)
             if row[1] not in ('input', '---')}
            for part in (ROOT / 'tests/golden/verdicts.md').read_text().split('## Inputs without a claim'))
        titles = {path.name.removesuffix('.tables.txt'): tables(path).get('verdict', ('',))[0] for path in GOLDEN}
        self.assertEqual(sorted([*claims, *none]), sorted(titles), 'each golden input has a row in one table')
        for name, words in none.items():
            self.assertRegex(titles[name], words if words else '^$', name)
        wrong = [f'{name}: {titles[name]}' for name, words in claims.items() if not re.search(words, titles[name])]
        self.assertLessEqual(10 * len(wrong), len(claims), wrong)


if __name__ == '__main__':
    unittest.main()
