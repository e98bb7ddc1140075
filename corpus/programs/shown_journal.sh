# cause: failed
# near-miss of: oom_daemon
# exit: 3
# A script shows what a watcher did to another service.
echo "train.service: systemd-oomd killed 3 process(es) in this unit."
exit 3
