# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
CrowdSec's local API as a bouncer sees it, which also misbehaves: python3 lapi.py DIR PORT_OR_PATH [CERT KEY CLIENT_CA].

DIR/decisions has a line for each decision: ID SCOPE VALUE DURATION ORIGIN SCENARIO [TYPE]. As the real one does, it
remembers what it has sent: without startup=true it sends what is new since the last answer, and what is not there any
more, also if that answer was lost on its way. DIR/mode says how it misbehaves: 500, 403, 503, garbage, cut, nothing,
other, hang, lost, miss (never tells of the first new one). DIR/raw: members of "new", as they are. DIR/log has a line for each request; DIR/metrics each report, unless DIR/mode is 404.
"""
import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time

DIR = sys.argv[1]
FIELDS = ("id", "scope", "value", "duration", "origin", "scenario", "type")
sent = {}


def read(name):
    try:
        with open(os.path.join(DIR, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def log(name, text):
    with open(os.path.join(DIR, name), "a", encoding="utf-8") as file:
        file.write(text + "\n")


def decisions():
    present = {}
    for line in read("decisions").splitlines():
        decision = dict(zip(FIELDS, line.split() + ["ban"]))
        decision["id"] = int(decision["id"])
        decision["scenario"] = decision["scenario"].replace("_", " ")
        present[decision["id"]] = decision
    return present


class Lapi(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def check(self):
        """Whether the request may be answered."""
        mode = read("mode").strip()
        if not hasattr(self.connection, "getpeercert") and self.headers.get("X-Api-Key") != read("key").strip():
            self.answer(403, b'{"message":"access forbidden"}')
        elif mode in ("403", "500", "503"):
            self.answer(int(mode), b'{"message":"something is wrong"}', Retry_After="1")
        elif mode == "hang":
            time.sleep(300)
        else:
            return True
        return False

    def do_GET(self):
        is_whole = "startup=true" in self.path
        log("log", ("whole" if is_whole else "changes") + " " + read("mode").strip())
        if not self.check():
            return
        present = decisions()
        new = [decision for number, decision in present.items() if is_whole or number not in sent]
        deleted = [dict(decision, duration="-1s") for number, decision in sent.items() if number not in present]
        sent.clear()
        sent.update(present)
        if read("mode").strip() == "miss" and not is_whole:
            new = new[1:]
        body = json.dumps({"new": new or None, "deleted": deleted or None}).encode()
        if read("raw"):
            body = body.replace(b'"new": [', b'"new": [' + read("raw").encode() + b",", 1)
        mode = read("mode").strip()
        if mode == "garbage":
            body = b"<html>" + body
        elif mode == "nothing":
            body = b""
        elif mode == "other":
            body = b'{"new": {"value": "192.0.2.1"}, "deleted": []}'
        elif mode == "lost":
            self.close_connection = True
            self.connection.close()
            return
        if mode == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
            return
        self.answer(200, body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        log("log", "report")
        if self.path != "/v1/usage-metrics" or read("mode").strip() == "404":
            self.answer(404, b'{"message":"Page or Method not found"}')
        elif self.check():
            log("metrics", body.decode())
            self.answer(201, b"")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *ignored):
        pass


class LocalServer(Server):
    address_family = socket.AF_UNIX

    def server_bind(self):
        socket.socket.bind(self.socket, self.server_address)
        self.server_name = self.server_port = "local"
        os.chmod(self.server_address, 0o777)

    def get_request(self):
        return self.socket.accept()[0], ("local", 0)


if "/" in sys.argv[2]:
    server = LocalServer(sys.argv[2], Lapi)
else:
    server = Server(("127.0.0.1", int(sys.argv[2])), Lapi)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    context.load_verify_locations(sys.argv[5])
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(os.path.join(DIR, "ready"), "w", encoding="ascii"):
    pass
threading.Event().wait()
