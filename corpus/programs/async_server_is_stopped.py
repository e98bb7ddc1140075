# cause: stopped
# near-miss of: hang
# slow
# after: kill=TERM 14s
# exit: 143
"""An asynchronous server without visitors waits like an event that nobody sets, and nothing is wrong."""
import asyncio


async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    print("listening", flush=True)
    await server.serve_forever()


asyncio.run(main())
