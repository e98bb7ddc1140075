# cause: failed
# near-miss of: oom_daemon
# exit: 1
"""A tool that shows the log of a machine: whom earlyoom ended there was somebody else."""

LOG = """Nov 03 04:11:52 gw earlyoom[904]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%
Nov 03 04:11:52 gw earlyoom[904]: sending SIGTERM to process 2232050 uid 1000 "bun": badness 712, VmRSS 4514 MiB
"""
print(LOG)
raise ValueError("the report has no column 'host'")
