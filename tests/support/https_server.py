"""An HTTPS server on 127.0.0.1 that misbehaves on request; ends with its standard input.

Arguments: certificate and key (PEM), folder to serve, file to log "GET PATH RANGE" lines to.
Prints its port. The first component of a path selects the behaviour, the last one the file:
/good/NAME.
"""
import http.server
import os
import re
import ssl
import sys
import threading
import time

CERTIFICATE, KEY, FOLDER, LOG = sys.argv[1:5]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = self.headers.get("Range", "")
        with open(LOG, "a") as log:
            log.write(f"GET {self.path} {asked}".strip() + "\n")
        behaviour, name = self.path.split("/")[1:3]
        with open(os.path.join(FOLDER, name), "rb") as opened:
            self.content = opened.read()
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        start = int(match.group(1)) if match and behaviour != "norange" else 0
        getattr(self, behaviour, self.missing)(start)

    def head(self, start, length):
        self.send_response(206 if start else 200)
        if start:
            size = len(self.content)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def good(self, start):
        if start >= len(self.content):
            return self.send_error(416)
        self.head(start, len(self.content) - start)
        self.wfile.write(self.content[start:])

    norange = good

    def short(self, start):
        """Sends half of the file and closes the connection; sends the rest if requested."""
        self.head(start, len(self.content) - start)
        self.wfile.write(self.content[start:] if start else self.content[: len(self.content) // 2])

    def unsized(self, start):
        self.head(start, None)
        self.wfile.write(self.content[start:])

    def slow(self, start):
        """Sends half of the file, pauses, and sends the other half."""
        half = len(self.content) // 2
        self.head(0, len(self.content))
        self.wfile.write(self.content[:half])
        time.sleep(0.5)
        self.wfile.write(self.content[half:])

    def stall(self, start):
        self.head(start, len(self.content) - start)
        self.wfile.write(self.content[start:start + 1000])
        time.sleep(30)

    def redirect(self, start):
        self.moved(f"https://{self.headers['Host']}/good/file")

    def downgrade(self, start):
        self.moved(f"http://{self.headers['Host']}/good/file")

    def moved(self, target):
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def missing(self, start):
        self.send_error(404)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Ignores clients that disconnect, as some tests do on purpose."""


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server = Server(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True,
                                    do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
