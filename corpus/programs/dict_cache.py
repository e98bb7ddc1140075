# cause: cgroup_oom
# grade: proven
# memory: 64MB
# pattern: leak
# line: 14
# exit: 137
"""A cache without a bound: every request is a new one."""

cache = {}


def answer(request):
    if request not in cache:
        cache[request] = [pow(number, 10**9, 1_000_003) / 7 for number in range(request, request + 1_000)]
    return cache[request][-1]


best = 0.0
for request in range(0, 10**9, 1_000):
    best = max(best, answer(request))
    answer(request)
