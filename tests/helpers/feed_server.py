# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A provider of lists that also misbehaves: python3 feed_server.py DIR PORT CERTIFICATE KEY [PLAIN_PORT]. The path says
what it does. It serves files of DIR, and adds a line to DIR/log for each request: path, If-None-Match, the user agent.
DIR/keys has a line for each request: port, path, the headers X-Key and Authorization, the number of the connection.
"""
import gzip
import hashlib
import http.server
import os
import ssl
import sys
import threading
import time

DIR = sys.argv[1]
PORT = int(sys.argv[2])
PLAIN_PORT = int(sys.argv[5]) if len(sys.argv) > 5 else 0


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve_file(self, name):
        with open(os.path.join(DIR, name), "rb") as file:
            body = file.read()
        etag = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
        modified = self.date_time_string(os.stat(os.path.join(DIR, name)).st_mtime)
        if self.headers.get("If-None-Match") == etag:
            self.answer(304, ETag=etag)
        else:
            self.answer(200, body, ETag=etag, Last_Modified=modified)

    def pour(self, piece, pause):
        """Sends without an end."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(pause)

    def misbehave(self, path):
        listed = b"203.0.113.1\n203.0.113.2\n203.0.113.3\n"
        here = "https://127.0.0.1:%d" % PORT
        if path == "slow":
            self.pour(b"\n", 0.2)
        elif path.startswith("silent"):
            time.sleep(60)
        elif path == "endless":
            self.pour(b"203.0.113.1\n" * 10000, 0)
        elif path == "truncated":
            self.answer(200, listed, Content_Length=1000)
            self.close_connection = True
        elif path in ("cut", "closed"):
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(listed + (b"203.0.113.0/2" if path == "cut" else b""))
            self.close_connection = True
        elif path == "too-short":
            self.answer(200, listed, Content_Length=12)
            self.close_connection = True
        elif path == "304":
            self.answer(304, Location=here + "/list")
        elif path == "429":
            self.answer(429, Retry_After=7200)
        elif path == "503":
            self.answer(503, Retry_After=self.date_time_string(time.time() + 7200))
        elif path == "loop":
            self.answer(302, Location=here + "/loop")
        elif path == "moved":
            self.answer(301, Location=here + "/list")
        elif path == "to-plain":
            self.answer(302, Location="http://127.0.0.1:%d/list" % PLAIN_PORT)
        elif path == "to-other":
            self.answer(302, Location="https://localhost:%d/list" % PORT)
        elif path == "to-port":
            self.answer(302, Location="https://127.0.0.1:%d/list" % (PORT + 1))
        elif path == "echo":
            self.answer(200, listed + ("wrong key %s\n" % self.headers.get("X-Key", "-")).encode())
        elif path == "to-tls":
            self.answer(302, Location=here + "/list")
        elif path == "to-link-local":
            self.answer(302, Location="http://169.254.1.1:%d/list" % PLAIN_PORT)
        elif path == "there-and-back":
            self.answer(302, Location=here + "/to-plain")
        elif path == "to-file":
            self.answer(302, Location="file:///etc/hostname")
        elif path == "empty":
            self.answer(200)
        elif path == "html":
            self.answer(200, b"\n<!DOCTYPE html><html><body>203.0.113.9</body></html>\n")
        elif path == "text":
            self.answer(200, b"Sorry, the list\nhas moved to\nanother host.\n203.0.113.9\n")
        elif path == "zip":
            self.answer(200, b"PK\x03\x04" + bytes(100))
        elif path == "gz":
            self.answer(200, gzip.compress(listed))
        elif path == "gzip":
            self.answer(200, gzip.compress(listed), Content_Encoding="gzip")
        elif path == "bad-gzip":
            self.answer(200, gzip.compress(listed)[:-8] + bytes(8), Content_Encoding="gzip")
        elif path == "short-gzip":
            self.answer(200, gzip.compress(listed)[:-8], Content_Encoding="gzip")
        elif path == "long-gzip":
            self.answer(200, gzip.compress(listed) + b"203.0.113.9\n", Content_Encoding="gzip")
        elif path == "brotli":
            self.answer(200, listed, Content_Encoding="br")
        elif path == "bomb":
            self.answer(200, gzip.compress(bytes(300 << 20), 1), Content_Encoding="gzip")
        elif path == "huge-line":
            self.answer(200, b"1" * 100000 + b"\n")
        elif path == "header":
            self.answer(200, listed, X_Long="x" * 200000)
        elif path == "pass":
            self.answer(200, listed + b"0.0.0.0/0 action pass\n")
        elif path == "bad-line":
            self.answer(200, listed + b"203.0.113.\x1b[2J\n")
        elif path == "control":
            self.answer(200, listed, ETag='"\x1b[2J"')
        elif path == "sha256":
            with open(os.path.join(DIR, "list"), "rb") as file:
                self.answer(200, hashlib.sha256(file.read()).hexdigest().encode() + b"  list\n")
        elif path == "bad-sha256":
            self.answer(200, b"0" * 64 + b"  list\n")
        elif os.path.exists(os.path.join(DIR, path)):
            self.serve_file(path)
        else:
            self.answer(404, b"203.0.113.9\n")

    def do_GET(self):
        path = self.path.split("?")[0].lstrip("/")
        with open(os.path.join(DIR, "log"), "a", encoding="ascii") as log:
            log.write("%s %s %s\n" % (self.path, self.headers.get("If-None-Match", "-"),
                                      self.headers.get("User-Agent", "-")))
        with open(os.path.join(DIR, "keys"), "a", encoding="ascii") as log:
            log.write("%d %s %s %s %d\n" % (self.server.server_address[1], path, self.headers.get("X-Key", "-"),
                                            self.headers.get("Authorization", "-"), self.client_address[1]))
        try:
            self.misbehave(path)
        except OSError:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *ignored):
        pass


if PLAIN_PORT:
    plain = Server(("", PLAIN_PORT), Provider)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[3], sys.argv[4])
server = Server(("", PORT), Provider)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(os.path.join(DIR, "ready.%d" % PORT), "w", encoding="ascii"):
    pass
server.serve_forever()
