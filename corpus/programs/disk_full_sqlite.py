# cause: disk_full
# limit: disk=2M
# exit: 1
"""A database says it in its own words."""
import sqlite3

store = sqlite3.connect("disk/runs.db")
store.execute("create table rows (text)")
for number in range(100_000):
    store.execute("insert into rows values (?)", ("x" * 1_000,))
store.commit()
