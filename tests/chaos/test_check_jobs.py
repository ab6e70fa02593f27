#!/usr/bin/env python3
# test_check_jobs.py - a good history of jobs, and one with each breach planted.
import copy
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_jobs

FROM = 1700000000
T = ['20231114T221320Z', '20231114T221321Z', '20231114T221322Z']
TICKS = ['2023-11-14T22:13:20Z', '2023-11-14T22:13:21Z', '2023-11-14T22:13:22Z']
PLAN = {'from': FROM, 'until': FROM + 2, 'true_clock': True,
        'jobs': {'all-0': 'again', 'most-0': 'at most once', 'forbid-0': 'forbid', 'graph-0': 'again',
                 'approve': 'by hand'}}


def start(job, number, step, attempt, needs='{}'):
    """Of a tick by its number, or of a run by hand by its id."""
    if isinstance(number, str):
        return f'start {job} {number} {step} {attempt} n1 - 1700000005000000 {needs}'
    return f'start {job} {job}@{T[number]} {step} {attempt} n1 {TICKS[number]} 1700000005000000 {needs}'


def end(job, number, step, attempt):
    run = number if isinstance(number, str) else f'{job}@{T[number]}'
    return f'end {job} {run} {step} {attempt}'


def ok(step, attempt):
    return {'name': step, 'state': 'OK', 'attempt': attempt, 'result': f'{step}/{attempt}'}


def record(job, steps, state='OK', **more):
    return {'job': job, 'state': state, 'steps': steps, **more}


def once(job, number):
    return [start(job, number, 'main', 1), end(job, number, 'main', 1)]


GRAPH = [start('graph-0', 0, 'first', 1), end('graph-0', 0, 'first', 1),
         start('graph-0', 0, 'left', 1, '{"first":"first/1"}'), start('graph-0', 0, 'right', 1, '{"first":"first/1"}'),
         end('graph-0', 0, 'left', 1), end('graph-0', 0, 'right', 1),
         start('graph-0', 0, 'last', 1, '{"left":"left/1","right":"right/1"}'), end('graph-0', 0, 'last', 1)]

# The first run of all-0 lost its first attempt. The second tick of most-0 was lost. Of forbid-0
# the second tick was skipped, and the third runs for none. Two ticks of graph-0 were missed. The
# caller that resumed the second bookmark was not told so.
EFFECTS = [
    start('all-0', 0, 'main', 1), *once('most-0', 0), start('most-0', 1, 'main', 1), *once('most-0', 2),
    start('all-0', 0, 'main', 2), end('all-0', 0, 'main', 2), *once('all-0', 1), *once('all-0', 2),
    *once('forbid-0', 0), *once('forbid-0', 2), *GRAPH,
    start('approve', 'approve.1', 'ask', 1), end('approve', 'approve.1', 'ask', 1),
    start('approve', 'approve.1', 'after', 1, '{"ok":"3"}'), end('approve', 'approve.1', 'after', 1),
]
TOLD = [('approve.1', 1, 75), ('approve.1', 2, 69), ('approve.1', 3, 0), ('approve.1', 4, 1),
        ('approve.2', 5, 69), ('approve.2', 6, 1)]
RUNS = {
    f'all-0@{T[0]}': record('all-0', [ok('main', 2)]),
    f'all-0@{T[1]}': record('all-0', [ok('main', 1)]),
    f'all-0@{T[2]}': record('all-0', [ok('main', 1)]),
    f'most-0@{T[0]}': record('most-0', [ok('main', 1)]),
    f'most-0@{T[1]}': record('most-0', [{'name': 'main', 'state': 'FAILED', 'attempt': 1}], 'FAILED', reason='lost'),
    f'most-0@{T[2]}': record('most-0', [ok('main', 1)]),
    f'forbid-0@{T[0]}': record('forbid-0', [ok('main', 1)]),
    f'forbid-0@{T[2]}': record('forbid-0', [ok('main', 1)]),
    f'graph-0@{T[0]}': record('graph-0', [ok(step, 1) for step in ('first', 'left', 'right', 'last')]),
    'approve.1': record('approve', [ok('ask', 1), {'name': 'ok', 'state': 'OK', 'result': '3'}, ok('after', 1)]),
    'approve.2': record('approve', [{'name': 'ok', 'state': 'OK', 'result': '5'}]),
}
STATES = {'all-0': {'mark': FROM + 2}, 'most-0': {'mark': FROM + 2}, 'forbid-0': {'mark': FROM + 2, 'skipped': 1},
          'graph-0': {'mark': FROM + 2, 'missed': 2}}


class Tale:
    """A history that can still be changed."""

    def __init__(self):
        self.effects, self.told = list(EFFECTS), list(TOLD)
        self.runs, self.states = copy.deepcopy(RUNS), copy.deepcopy(STATES)

    def step(self, run, name):
        return [step for step in self.runs[run]['steps'] if step['name'] == name][0]

    def set(self, run, name, **keys):
        self.step(run, name).update(keys)

    def move(self, line, place):
        self.effects.remove(line)
        self.effects.insert(place, line)

    def find(self):
        history = check_jobs.History(PLAN, self.effects, self.told, self.runs, self.states)
        return [what for what, _ in check_jobs.breaches(history)]


FIRST, LOST = f'all-0@{T[0]}', f'most-0@{T[1]}'
GRAPH_RUN = f'graph-0@{T[0]}'

# What is changed, and the beginning of the breach that must be found.
PLANTED = [
    (lambda t: t.effects.append(f'two {FIRST}/main {FIRST} main 2'), 'two at a time'),
    (lambda t: t.effects.append(f'start all-0 all-0@other main 1 n2 {TICKS[0]} 1700000005000000 {{}}'),
     'a tick was executed by two'),
    (lambda t: t.effects.append('start all-0 all-0@20231114T221330Z main 1 n1 2023-11-14T22:13:30Z 1700000009000000 {}'),
     'a tick that was not due'),
    (lambda t: t.effects.append(start('most-0', 1, 'main', 1)), 'an attempt was started twice'),
    (lambda t: t.move(start('all-0', 0, 'main', 2), 0), 'an attempt began after'),
    (lambda t: t.effects.append(end('all-0', 0, 'main', 1)), 'an attempt had an effect after'),
    (lambda t: (t.effects.append(start('most-0', 1, 'main', 2)), t.set(LOST, 'main', attempt=2)), 'more attempts'),
    (lambda t: t.effects.append('start most-0 most-0@%s main 1 n1 %s 1699999999000000 {}' % (T[1], TICKS[1])),
     'begun before its tick'),
    (lambda t: t.move(end('graph-0', 0, 'left', 1), len(t.effects)), 'a step began before'),
    (lambda t: t.effects.remove(end('graph-0', 0, 'first', 1)), 'a step began before'),
    (lambda t: t.set(GRAPH_RUN, 'left', attempt=2, result='left/2'), 'a step was handed another'),
    (lambda t: t.effects.append(start('graph-0', 0, 'last', 2, '{"left":"left/2","right":"right/1"}')),
     'a step was handed another'),
    (lambda t: t.effects.remove(end('all-0', 1, 'main', 1)), 'accepted without'),
    (lambda t: t.set(FIRST, 'main', result='main/1'), 'accepted without'),
    (lambda t: t.effects.append(start('all-0', 1, 'main', 2)), 'begun after it was accepted'),
    (lambda t: t.runs.pop(LOST), 'an effect that the store'),
    (lambda t: t.effects.append(start('most-0', 1, 'main', 2)), 'an effect that the store'),
    (lambda t: t.runs[FIRST].update(state='ACTIVE'), 'left:'),
    (lambda t: t.runs[LOST].update(reason='failed'), 'a run ended against'),
    (lambda t: t.runs[FIRST].update(state='FAILED', reason='lost'), 'a run ended against'),
    (lambda t: t.states['graph-0'].update(missed=1), 'lost:'),
    (lambda t: t.states['graph-0'].update(missed=3), 'lost:'),
    (lambda t: t.states['all-0'].update(mark=FROM + 1), 'lost:'),
    (lambda t: t.states['graph-0'].update(missed=0, merged=2), 'ticks without a run against'),
    (lambda t: t.runs[FIRST].update(merged=1), 'runs have more merged'),
    (lambda t: t.told.append(('approve.1', 7, 0)), 'a bookmark was resumed twice'),
    (lambda t: t.set('approve.1', 'ok', result='2'), 'a bookmark was resumed by another'),
    (lambda t: t.set('approve.2', 'ok', result='6'), 'a bookmark was resumed by another'),
    (lambda t: t.runs.clear(), 'nothing was done'),
]


def main():
    bad = 0
    if Tale().find():
        print(f'the good history: {Tale().find()}')
        bad = 1
    for number, (change, breach) in enumerate(PLANTED):
        tale = Tale()
        change(tale)
        if not any(what.startswith(breach) for what in tale.find()):
            print(f'not found: {breach!r} after change {number}, but {tale.find()}')
            bad = 1
    for what, _ in check_jobs.CHECKS:
        if not any(what.startswith(breach) for _, breach in PLANTED):
            print(f'no history for: {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
