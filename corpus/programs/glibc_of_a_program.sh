# cause: library_version
# near-miss of: missing_file
# exit: 1
# A program that was built on a newer machine.
echo "./train: /lib/x86_64-linux-gnu/libc.so.6: version \`GLIBC_2.38' not found (required by ./train)" >&2
exit 1
