#!/usr/bin/env python3
# check_jobs.py - looks at the effects of a job ground (job_effect.c), and at what the store
# says of them in the end.
#
#   check_jobs.py FOLDER     one line for each breach; 1 when there are some
#
# plan.json   which job is due each second, from when to when, and by which policy
# effects     the witness: every start and end of an attempt, in their order
# told        what each caller was told who resumed a bookmark
# records     the records of runs and the states of jobs at the end, as the store has them
#
# Of the store it believes what it says of ticks that did not run, and which attempt was
# accepted; both have to agree with the effects.
import json
import sys
import time

SHOWN = 5
FINAL = {'OK', 'FAILED', 'CANCELLED', 'MISSED', 'SKIPPED'}

# By policy: attempts that a step may have; which ticks may be recorded as having no run;
# which ends a run may have beside OK; for which reasons.
POLICIES = {
    'again': (100, {'missed'}, set(), set()),
    'at most once': (1, {'missed'}, {'FAILED'}, {'lost'}),
    'forbid': (100, {'merged', 'skipped'}, set(), set()),
    'queue': (100, {'merged', 'skipped'}, set(), set()),
    'replace': (1, {'merged'}, {'FAILED', 'CANCELLED'}, {'lost', 'replaced'}),
    'lock': (100, {'missed'}, {'SKIPPED'}, {'lock busy'}),
    'skip': (100, {'missed'}, set(), set()),
    'by hand': (100, set(), set(), set()),
}
NEEDS = {'left': ['first'], 'right': ['first'], 'last': ['left', 'right'], 'after': ['ok']}


class History:
    """What happened: effects in their order, and the end as the store has it."""

    def __init__(self, plan, effects, told, runs, states):
        self.plan, self.told, self.runs, self.states = plan, told, runs, states
        self.starts, self.ends, self.twos = [], {}, []
        for place, words in enumerate(line.split(' ', 8) for line in effects):
            if words[0] == 'start':
                self.starts.append((place, *words[1:4], int(words[4]), *words[5:]))
            elif words[0] == 'end':
                self.ends.setdefault((words[2], words[3], int(words[4])), []).append(place)
            else:
                self.twos.append(tuple(words[1:]))
        self.ended = {}
        for (run, step, _), places in self.ends.items():
            self.ended.setdefault((run, step), []).extend(places)
        self.ticks = {time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(at)): at
                      for at in range(plan['from'], plan['until'] + 1)}

    def policy(self, job):
        return POLICIES[self.plan['jobs'][job]]

    def step(self, run, name):
        for step in self.runs.get(run, {}).get('steps', []):
            if step['name'] == name:
                return step
        return {}

    def ticked(self):
        return [job for job, policy in self.plan['jobs'].items() if policy != 'by hand']


def compact(tick):
    return tick.replace('-', '').replace(':', '')


def two_at_a_time(h):
    return h.twos


def tick_by_two_runs(h):
    runs = {}
    for _, job, run, _, _, _, tick, *_ in h.starts:
        if tick != '-':
            runs.setdefault((job, tick), set()).add(run)
    return [(key, *all) for key, all in runs.items() if len(all) > 1]


def tick_of_no_plan(h):
    """A tick that is not due, or a run that has the name of another."""
    found = []
    for _, job, run, _, _, _, tick, *_ in h.starts:
        plain = compact(tick)
        if tick != '-' and (run != f'{job}@{plain}' or plain not in h.ticks or h.plan['jobs'].get(job) == 'by hand'):
            found.append((job, run, tick))
    return found


def attempt_twice(h):
    seen, found = set(), []
    for _, _, run, step, attempt, *_ in h.starts:
        if (run, step, attempt) in seen:
            found.append((run, step, attempt))
        seen.add((run, step, attempt))
    return found


def attempts_fall(h):
    last, found = {}, []
    for _, _, run, step, attempt, *_ in h.starts:
        if attempt < last.get((run, step), 0):
            found.append((run, step, attempt))
        last[run, step] = attempt
    return found


def end_after_next(h):
    """An attempt that still had an effect when the next one had begun."""
    found, last = [], {}
    for place, _, run, step, attempt, *_ in h.starts:
        for before in last.get((run, step), []):
            if any(end > place for end in h.ends.get((run, step, before), [])):
                found.append((run, step, before, attempt))
        last.setdefault((run, step), []).append(attempt)
    return found


def too_many_attempts(h):
    return [(run, step, attempt) for _, job, run, step, attempt, *_ in h.starts if attempt > h.policy(job)[0]]


def too_early(h):
    if not h.plan['true_clock']:
        return []
    found = []
    for _, _, run, _, _, _, tick, wall_us, *_ in h.starts:
        if int(wall_us) < h.ticks.get(compact(tick), 0) * 1000000:
            found.append((run, wall_us))
    return found


def before_its_needs(h):
    """A step began, and no attempt of one that it needs had ended."""
    found = []
    for place, _, run, step, attempt, *_ in h.starts:
        for need in NEEDS.get(step, []):
            if need != 'ok' and min(h.ended.get((run, need), [place])) >= place:
                found.append((run, step, attempt, need))
    return found


def other_results(h):
    """What a step was handed is not the result that was accepted."""
    found = []
    for _, _, run, step, attempt, _, _, _, needs in h.starts:
        handed = json.loads(needs)
        for need in NEEDS.get(step, []):
            accepted = h.step(run, need).get('result')
            if handed.get(need) != accepted:
                found.append((run, step, attempt, need, handed.get(need), accepted))
    return found


def accepted_without_effect(h):
    found = []
    for run, record in h.runs.items():
        for step in record['steps']:
            if step.get('state') != 'OK' or step['name'] == 'ok':
                continue
            attempt = step.get('attempt', 0)
            if (run, step['name'], attempt) not in h.ends:
                found.append((run, step['name'], attempt))
            elif step.get('result') != f'{step["name"]}/{attempt}':
                found.append((run, step['name'], attempt, step.get('result')))
    return found


def after_it_was_accepted(h):
    """An attempt that began although an earlier one is the accepted one."""
    return [(run, step, attempt) for _, _, run, step, attempt, *_ in h.starts
            if h.step(run, step).get('state') == 'OK' and attempt > h.step(run, step).get('attempt', 0)]


def effect_without_record(h):
    """A start of which the store knows nothing, or not so many attempts."""
    return sorted({(run, step, attempt) for _, _, run, step, attempt, *_ in h.starts
                   if run not in h.runs or attempt > h.step(run, step).get('attempt', 0)})


def not_ended(h):
    return [(run, record['state']) for run, record in h.runs.items() if record['state'] not in FINAL]


def wrong_end(h):
    found = []
    for run, record in h.runs.items():
        _, _, ends, reasons = h.policy(record['job'])
        if record['state'] in FINAL - {'OK'} and (record['state'] not in ends or record.get('reason') not in reasons):
            found.append((run, record['state'], record.get('reason')))
    return found


def tick_lost(h):
    """Ticks that neither have a run nor are recorded as missed, merged or skipped."""
    found = []
    for job in h.ticked():
        state = h.states.get(job, {})
        ran = sum(f'{job}@{tick}' in h.runs for tick in h.ticks)
        recorded = sum(state.get(key, 0) for key in ('missed', 'merged', 'skipped'))
        if ran + recorded != len(h.ticks) or state.get('mark') != h.plan['until']:
            found.append((job, len(h.ticks), ran, recorded, state.get('mark')))
    return found


def skipped_against_policy(h):
    found = []
    for job in h.ticked():
        for key in ('missed', 'merged', 'skipped'):
            if h.states.get(job, {}).get(key, 0) and key not in h.policy(job)[1]:
                found.append((job, key, h.states[job][key]))
    return found


def merged_uncounted(h):
    """The runs say for how many ticks they ran, too."""
    found = []
    for job in h.ticked():
        merged = sum(record.get('merged', 0) for record in h.runs.values() if record['job'] == job)
        if merged > h.states.get(job, {}).get('merged', 0):
            found.append((job, merged))
    return found


def resumed_twice(h):
    yes = {}
    for run, caller, code in h.told:
        if code == 0:
            yes.setdefault(run, []).append(caller)
    return [(run, *callers) for run, callers in yes.items() if len(callers) > 1]


def resumed_by_another(h):
    """The data is not of the caller who was told yes, or of one who was told no."""
    found = []
    for run, record in h.runs.items():
        if record['job'] != 'approve' or h.step(run, 'ok').get('state') != 'OK':
            continue
        given = h.step(run, 'ok').get('result')
        codes = {str(caller): code for one, caller, code in h.told if one == run}
        if codes.get(given) in (None, 1, 75) or (codes[given] != 0 and 0 in codes.values()):
            found.append((run, given, codes.get(given)))
    return found


def nothing_done(h):
    done = [record for record in h.runs.values() if record['state'] == 'OK']
    resumed = [code for _, _, code in h.told if code == 0]
    return [] if done and h.told and (resumed or any(run.startswith('approve') for run in h.runs)) else [len(h.runs)]


CHECKS = [
    ('two at a time: a tree lived that excludes the one that began', two_at_a_time),
    ('a tick was executed by two runs', tick_by_two_runs),
    ('a tick that was not due', tick_of_no_plan),
    ('an attempt was started twice', attempt_twice),
    ('an attempt began after a later one', attempts_fall),
    ('an attempt had an effect after the next one had begun', end_after_next),
    ('more attempts than the job allows', too_many_attempts),
    ('begun before its tick', too_early),
    ('a step began before its needs', before_its_needs),
    ('a step was handed another result than the accepted one', other_results),
    ('accepted without an effect', accepted_without_effect),
    ('begun after it was accepted', after_it_was_accepted),
    ('an effect that the store does not know', effect_without_record),
    ('left: a run has not ended', not_ended),
    ('a run ended against its policy', wrong_end),
    ('lost: ticks without a run that nothing records', tick_lost),
    ('ticks without a run against the policy', skipped_against_policy),
    ('runs have more merged ticks than their job', merged_uncounted),
    ('a bookmark was resumed twice', resumed_twice),
    ('a bookmark was resumed by another than was told so', resumed_by_another),
    ('nothing was done', nothing_done),
]


def breaches(h):
    """[(what, cases)] of what does not hold."""
    found = [(what, check(h)) for what, check in CHECKS]
    return [(what, cases) for what, cases in found if cases]


def read_lines(path):
    try:
        with open(path, encoding='utf-8') as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def read(folder):
    runs, states = {}, {}
    for line in read_lines(f'{folder}/records'):
        key, text = line.split(' ', 1)
        kind, name = key.split('/', 1)
        # What is not written down is the first of its kind.
        (runs if kind == 'run' else states)[name] = {'state': 'QUEUED', **json.loads(text)}
    told = [(run, int(caller), int(code)) for run, caller, code in
            (line.split() for line in read_lines(f'{folder}/told'))]
    with open(f'{folder}/plan.json', encoding='utf-8') as file:
        plan = json.load(file)
    return History(plan, read_lines(f'{folder}/effects'), told, runs, states)


def main(folder):
    h = read(folder)
    found = breaches(h)
    for what, cases in found:
        print(f'{what}: {len(cases)} times, as {cases[:SHOWN]}')
    with open(f'{folder}/faults', encoding='utf-8') as file:
        faults = json.load(file)
    kinds = {}
    for job, state in h.states.items():
        for key in ('missed', 'merged', 'skipped'):
            if state.get(key):
                what = f'{key} by {h.plan["jobs"][job]}'
                kinds[what] = kinds.get(what, 0) + state[key]
    ends = {}
    for record in h.runs.values():
        ends[record['state']] = ends.get(record['state'], 0) + 1
    again = sum(attempt > 1 for _, _, _, _, attempt, *_ in h.starts)
    resumed = {run for run, _, _ in h.told}
    print(f'{len(h.ticks) * len(h.ticked())} ticks, {len(h.runs)} runs ({ends}), recorded without a run: {kinds}')
    print(f'{len(h.starts)} attempts, {again} of them not the first, {len(h.starts) - len(h.ends)} without an end; '
          f'{len(resumed)} bookmarks, {len(h.told)} callers; faults: {faults}')
    print(f'operations {len(h.starts) + len(h.told)}, holds {len(h.starts)}, faults {sum(faults.values())}, '
          f'violations {sum(len(cases) for _, cases in found)}, not promised 0')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
