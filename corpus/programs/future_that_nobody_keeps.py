# cause: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""An event that nobody will ever set."""
import asyncio


async def main():
    print("waiting", flush=True)
    ready = asyncio.Event()
    await ready.wait()


asyncio.run(main())
