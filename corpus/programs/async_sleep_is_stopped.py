# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""It sleeps inside an event loop, as it should; somebody stops it."""
import asyncio

print("sleeping", flush=True)
asyncio.run(asyncio.sleep(3600))
