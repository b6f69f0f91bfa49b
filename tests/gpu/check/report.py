"""The report of a run: OUT/gpu-check.json with everything, OUT/gpu-check.md to be read. Written anew after each check,
so that it is there whatever comes next."""
import datetime
import json
import os
import re

from check import claims, questions

# A borrowed machine gives this back: few files, not large, with plain names.
MOST_FILES = 8
MOST_BYTES = 16 << 20
PLAIN = re.compile(r'[A-Za-z0-9._-]+')


def about(check, arguments):
    return {'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'),
            'command': ' '.join(['scripts/gpu-check', *arguments]), 'stand_in': check.stand_in, 'seconds': 0}


def known_of(out):
    """Findings of earlier calls with this OUT."""
    path = out / 'gpu-check.json'
    return json.loads(path.read_text()) if path.exists() else {'runs': [], 'findings': []}


def of_other_kind(out, stand_in):
    """True where OUT has a report of the stand-in and this is a GPU, or the other way round."""
    return any(run['stand_in'] != stand_in for run in known_of(out)['runs'])


def merge(known, run, findings):
    """With what earlier calls have found: the same finding is replaced."""
    names = {finding['name'] for finding in findings}
    kept = [finding for finding in known['findings'] if finding['name'] not in names]
    return {'runs': [*known['runs'], run], 'findings': [*kept, *findings]}


def text_of(whole, answers, stand_in):
    lines = [f'# gpu-check, {whole["runs"][-1]["date"]}' + (' (SIMULATED GPU: figures mean nothing)' if stand_in else ''), '']
    lines += [f'- `{run["command"]}`, {run["date"]}, {run["seconds"]} s' for run in whole['runs']]
    lines += ['', '| | check | finding |', '|---|---|---|']
    for finding in whole['findings']:
        mark = {True: 'ok', False: '**failed**', None: ''}[finding['met']]
        lines.append(f'| {mark} | {finding["name"]} | {finding["text"]} |')
    lines += ['', '## Claims of docs/measurements/gpu.md', '', *claims.page(whole['findings'])]
    lines += ['', '## Questions that only a GPU can answer', '']
    for question, text, because in answers:
        lines.append(f'- {question}. ' + (f'**Answered**: {text}' if text else f'**Not answered**: {because}.'))
    return '\n'.join(lines) + '\n'


def replace(path, text):
    """Whole or not at all: the machine may stop us at any moment."""
    part = path.with_name(path.name + '.part')
    part.write_text(text)
    os.replace(part, path)


def write(out, whole, stand_in):
    answers = questions.answers(whole['findings'], stand_in)
    whole['questions'] = [{'question': question, 'answer': answer, 'because': None if answer else because}
                          for question, answer, because in answers]
    replace(out / 'gpu-check.json', json.dumps(whole, indent=1, default=str) + '\n')
    replace(out / 'gpu-check.md', text_of(whole, answers, stand_in))


class Report:
    def __init__(self, check, arguments):
        self.check = check
        self.known = known_of(check.out)
        self.run = about(check, arguments)

    def write(self):
        self.run['seconds'] = round(self.check.limit_s - self.check.left_s())
        write(self.check.out, merge(self.known, self.run, self.check.findings), self.check.stand_in)


def join(folders, out):
    """One report in `out` of those in the folders: what the four commands of a packed tree have brought back."""
    whole = {'runs': [], 'findings': []}
    for folder in folders:
        known = known_of(folder)
        names = {finding['name'] for finding in known['findings']}
        whole = {'runs': whole['runs'] + known['runs'],
                 'findings': [one for one in whole['findings'] if one['name'] not in names] + known['findings']}
    if not whole['runs']:
        return False
    out.mkdir(parents=True, exist_ok=True)
    write(out, whole, any(run['stand_in'] for run in whole['runs']))
    return True


def unfit(out):
    """Files that would not come back from the machine, and why; empty where all would."""
    files = sorted(path for path in out.rglob('*') if path.is_file())
    found = [f'{len(files)} files, more than {MOST_FILES}'] if len(files) > MOST_FILES else []
    for path in files:
        if path.stat().st_size >= MOST_BYTES:
            found.append(f'{path.name} has {path.stat().st_size} bytes')
        if path.parent != out or not PLAIN.fullmatch(path.name):
            found.append(f'{path.name}: its name or folder')
    return found
