# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where lists come from that a host fetches: a provider of a list by URL, and the broker of a fleet."""
import atexit
import hashlib
import http.server
import os
import shutil
import subprocess
import threading
import time


class Provider:
    """Serves one file, over HTTP at 127.0.0.1. tests/helpers/feed_server.py is one that misbehaves."""
    def __init__(self):
        provider, self.path = self, None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if not os.path.exists(provider.path):
                    return self.send_error(404)
                with open(provider.path, "rb") as file:
                    body = file.read()
                etag = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
                is_known = self.headers.get("If-None-Match") == etag
                self.send_response(304 if is_known else 200)
                self.send_header("ETag", etag)
                self.end_headers()
                return self.wfile.write(b"" if is_known else body)

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Broker:
    """A Redis server in the filter's namespace, with a fleet that is made anew for each course."""
    def __init__(self, directory):
        self.process = subprocess.Popen(
            ["bash", "tests/helpers/redis-server.sh", "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--dir", directory],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not self.ask("PING") and time.monotonic() < end:
            time.sleep(0.05)

        atexit.register(self.process.kill)

    @classmethod
    def start(cls, directory):
        return cls(directory) if shutil.which("redis-check-rdb") else None

    @staticmethod
    def ask(*words):
        return subprocess.run(["redis-cli", "-e"] + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
