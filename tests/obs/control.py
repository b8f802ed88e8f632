"""Stops or starts the stream of a running OBS through its websocket, and waits until it has done so.

    control.py PORT stop|start
"""

import logging
import sys
import time

import obsws_python

PATIENCE_S = 30
POLL_S = 0.1


def connect(port):
    """OBS opens its websocket some time after its start."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return obsws_python.ReqClient(host="127.0.0.1", port=port, password="", timeout=5)
        except (ConnectionError, TimeoutError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def main():
    port, wish = int(sys.argv[1]), sys.argv[2]
    logging.disable(logging.CRITICAL)
    client = connect(port)
    wanted = wish == "start"
    if client.get_stream_status().output_active != wanted:
        (client.start_stream if wanted else client.stop_stream)()
    deadline = time.monotonic() + PATIENCE_S
    while client.get_stream_status().output_active != wanted:
        if time.monotonic() > deadline:
            sys.exit(f"OBS did not {wish} its stream")
        time.sleep(POLL_S)


main()
