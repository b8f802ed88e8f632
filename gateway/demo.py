"""`make demo`: a gateway with its defaults, the bundled clip published to it, and a status line.

Usage: python3 gateway/demo.py PATH-OF-WEIR [FLAGS OF THE GATEWAY]
Stops both on Ctrl-C. Needs nothing but Python's standard library.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CLIP = Path(__file__).with_name("assets") / "demo.flv"
STREAM = "live/demo"
STOP_SECONDS = 3


def main(weir, *flags):
    # SIGTERM ends the demo as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.NamedTemporaryFile(prefix="weir-demo-", suffix=".log") as log:
        gateway = subprocess.Popen([weir, "run", *flags], stdout=subprocess.PIPE, stderr=log, text=True)
        publisher = None
        try:
            listeners = wait_until_ready(gateway)
            address = f"rtmp://{reachable(listeners['rtmp'])}/{STREAM}"
            publisher = subprocess.Popen([weir, "publish", str(CLIP), address, "--loop"], stdout=log, stderr=log)
            say_where(listeners)
            watch(listeners, gateway, publisher)
        except KeyboardInterrupt:
            print("\nStopping.")
        except Ended as ended:
            print(f"\n{ended}\n{Path(log.name).read_text()}", file=sys.stderr)
            sys.exit(1)
        finally:
            stop(publisher, gateway)


class Ended(Exception):
    """One of the two processes ended by itself."""


def wait_until_ready(gateway):
    for line in gateway.stdout:
        if line.startswith("weir ready "):
            return dict(pair.split("=", 1) for pair in line.split()[2:])
    raise Ended("The gateway did not start:")


def reachable(listener):
    """The address of a listener as this machine can connect to it."""
    host, port = listener.rsplit(":", 1)
    return f"127.0.0.1:{port}" if host in ("0.0.0.0", "[::]") else f"{host}:{port}"


def say_where(listeners):
    http, rtmp, admin = (reachable(listeners[key]) for key in ("http", "rtmp", "admin"))
    print(f"""
  Open  http://{http}/{STREAM}

  LL-HLS    http://{http}/{STREAM}/index.m3u8
  HLS, TS   http://{http}/{STREAM}.m3u8
  HTTP-FLV  http://{http}/{STREAM}.flv
  RTMP      rtmp://{rtmp}/{STREAM}
  Operate   http://{admin}/   (I/O backend: {listeners['io']}, cores: {listeners['cores']})

  Publish your own: OBS > Settings > Stream > Custom, server rtmp://{rtmp}/live, key NAME
  Ctrl-C stops the demo.
""", flush=True)


def watch(listeners, gateway, publisher):
    url = f"http://{reachable(listeners['admin'])}/api/v1/streams"
    terminal = sys.stdout.isatty()
    while True:
        if gateway.poll() is not None:
            raise Ended(f"The gateway ended with {gateway.returncode}:")
        if publisher.poll() is not None:
            raise Ended(f"The publisher ended with {publisher.returncode}:")
        line = status(url)
        # A terminal has one line that changes; a file gets a line now and then.
        print(f"\r\x1b[K  {line}" if terminal else f"  {line}", end="" if terminal else "\n", flush=True)
        time.sleep(1 if terminal else 10)


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            streams = json.load(answer)["streams"]
    except OSError as error:
        return f"no status: {error}"
    ours = [stream for stream in streams if f"{stream['app']}/{stream['name']}" == STREAM]
    return describe(ours[0]) if ours else f"waiting for {STREAM}"


def describe(stream):
    video = next((track for track in stream["tracks"] if track["kind"] == "video"), {})
    codecs = ", ".join(track["codec"] for track in stream["tracks"])
    players = stream["players"]
    watching = ", ".join(f"{count} {name.replace('_', '-')}" for name, count in players.items() if count)
    parts = [
        f"{STREAM} {stream['state']}",
        codecs or "no frames yet",
        f"{video['width']}x{video['height']} at {video.get('fps') or 0:.0f} fps" if video.get("width") else "",
        f"{stream['bitrate'] / 1000:.0f} kbit/s",
        f"players: {watching or 'none yet'}",
        f"sent {stream['bytes_out'] / 1e6:.1f} MB",
    ]
    return " · ".join(part for part in parts if part)


def stop(*processes):
    running = [process for process in processes if process]
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
