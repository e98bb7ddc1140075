# cause: failed
# near-miss of: cgroup_oom
# exit: 1
# A script shows what Slurm wrote into the log of another job.
echo "job 17 has failed:"
echo "slurmstepd: error: Detected 1 oom_kill event in StepId=17.0. Some of the step tasks have been OOM Killed."
exit 1
