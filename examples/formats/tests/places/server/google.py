"""Answers as the XML interface of Google Cloud Storage is described to, with everything in memory.

Usage: google.py PORT. It knows what a client needs to read, list, write under a condition, and upload in parts:
https://cloud.google.com/storage/docs/xml-api/reference-methods. It shows three entries a page unless it is asked for more, so
that lists have several pages.
"""

import email.utils
import hashlib
import http.server
import itertools
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree
from xml.sax.saxutils import escape

TOKEN = "Bearer ya29.only-for-tests"
PART_BYTES_MIN = 5 << 20


class Refused(Exception):
    """An answer that says no: its status and code."""


class Stored:
    """An object: its bytes, and what tells this version of it from others."""

    generations = itertools.count(1_700_000_000_000_000)

    def __init__(self, data, etag=None):
        self.data = data
        self.generation = next(Stored.generations)
        self.etag = etag or f'"{hashlib.md5(data).hexdigest()}"'
        self.modified = time.time()

    def head(self):
        modified = email.utils.formatdate(self.modified, usegmt=True)
        return {"ETag": self.etag, "x-goog-generation": self.generation, "Last-Modified": modified}


class Bucket:
    def __init__(self):
        self.objects = {}
        self.uploads = {}


BUCKETS = {}
LOCK = threading.Lock()
NAMES = itertools.count(1)


def listed(entries, begin, count):
    """A page of sorted entries behind a mark, and whether more follow."""
    rest = [entry for entry in sorted(entries) if begin is None or entry > begin]
    return rest[:count], len(rest) > count


def list_objects(bucket, asked):
    prefix, begin = asked.get("prefix", ""), asked.get("continuation-token") or asked.get("start-after")
    keys = [key for key in bucket.objects if key.startswith(prefix)]
    page, has_more = listed(keys, begin, int(asked.get("max-keys", 3)))
    more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if has_more else ""
    entries = []
    for key in page:
        stored = bucket.objects[key]
        modified = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.modified))
        entries.append(
            f"<Contents><Key>{escape(key)}</Key><Generation>{stored.generation}</Generation>"
            f"<LastModified>{modified}</LastModified><ETag>{escape(stored.etag)}</ETag>"
            f"<Size>{len(stored.data)}</Size></Contents>"
        )
    answer = f"<IsTruncated>{str(has_more).lower()}</IsTruncated>{more}{''.join(entries)}"
    return f"<ListBucketResult>{answer}</ListBucketResult>"


def list_uploads(bucket, asked):
    prefix, begin = asked.get("prefix", ""), None
    if "key-marker" in asked:
        begin = (asked["key-marker"], asked.get("upload-id-marker", ""))
    uploads = [(key, name) for name, (key, _) in bucket.uploads.items() if key.startswith(prefix)]
    page, has_more = listed(uploads, begin, int(asked.get("max-uploads", 3)))
    more = ""
    if has_more:
        key, name = page[-1]
        more = f"<NextKeyMarker>{escape(key)}</NextKeyMarker><NextUploadIdMarker>{name}</NextUploadIdMarker>"
    entries = [f"<Upload><Key>{escape(key)}</Key><UploadId>{name}</UploadId></Upload>" for key, name in page]
    answer = f"<IsTruncated>{str(has_more).lower()}</IsTruncated>{more}{''.join(entries)}"
    return f"<ListMultipartUploadsResult>{answer}</ListMultipartUploadsResult>"


def upload_of(bucket, key, name):
    of, parts = bucket.uploads.get(name, (None, None))
    if of != key:
        raise Refused(404, "NoSuchUpload")
    return parts


def complete(bucket, key, name, body):
    """Makes the parts that are named an object. What it is known by does not follow from its parts."""
    parts, data = upload_of(bucket, key, name), []
    for part in xml.etree.ElementTree.fromstring(body):
        said = {child.tag.rsplit("}", 1)[-1]: child.text for child in part}
        etag, bytes_of = parts.get(int(said["PartNumber"]), (None, b""))
        if etag != said["ETag"]:
            raise Refused(400, "InvalidPart")
        data.append(bytes_of)
    if any(len(part) < PART_BYTES_MIN for part in data[:-1]):
        raise Refused(400, "EntityTooSmall")
    del bucket.uploads[name]
    whole = b"".join(data)
    return put(bucket, key, Stored(whole, f'"-{hashlib.sha256(whole).hexdigest()[:22]}="'))


def put(bucket, key, stored):
    bucket.objects[key] = stored
    return stored


def met(bucket, key, head):
    """Conditions go by generations; that of what is not there is 0."""
    wanted = head.get("x-goog-if-generation-match")
    there = bucket.objects.get(key)
    if wanted is not None and int(wanted) != (there.generation if there else 0):
        raise Refused(412, "PreconditionFailed")


def bytes_in(range_said, length):
    """The first byte and the one behind the last that a head asks for."""
    first, last = range_said.removeprefix("bytes=").split("-")
    begin = int(first) if first else max(length - int(last), 0)
    end = min(int(last) + 1, length) if first and last else length
    if begin >= length:
        raise Refused(416, "InvalidRange")
    return begin, end


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", head=()):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        head = {"Content-Length": len(body)} | dict(head)
        if self.close_connection:
            # Else the next request may go the way of one that ends.
            head["Connection"] = "close"
        for name, value in head.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        bucket, _, key = path.lstrip("/").partition("/")
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        try:
            if self.headers.get("Authorization") != TOKEN:
                raise Refused(403, "AccessDenied")
            with LOCK:
                answer = self.answer_to(urllib.parse.unquote(bucket), urllib.parse.unquote(key), asked, body)
        except Refused as refused:
            status, code = refused.args
            answer = (status, f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code></Error>")
        self.answer(*answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def answer_to(self, name, key, asked, body):
        if self.command == "PUT" and not key:
            BUCKETS.setdefault(name, Bucket())
            return (200,)
        if name not in BUCKETS:
            raise Refused(404, "NoSuchBucket")
        bucket = BUCKETS[name]
        if not key:
            return 200, list_uploads(bucket, asked) if "uploads" in asked else list_objects(bucket, asked)
        if "uploads" in asked or "uploadId" in asked:
            return self.answer_of_upload(bucket, key, asked, body)
        if self.command == "PUT":
            met(bucket, key, self.headers)
            return 200, b"", put(bucket, key, Stored(body)).head()
        if key not in bucket.objects:
            raise Refused(404, "NoSuchKey")
        if self.command == "DELETE":
            del bucket.objects[key]
            return (204,)
        return self.answer_with(bucket.objects[key])

    def answer_with(self, stored):
        if self.headers.get("If-Match", stored.etag) != stored.etag:
            raise Refused(412, "PreconditionFailed")
        length = len(stored.data)
        if "Range" not in self.headers:
            return 200, stored.data, stored.head()
        begin, end = bytes_in(self.headers["Range"], length)
        said = {"Content-Range": f"bytes {begin}-{end - 1}/{length}"}
        return 206, stored.data[begin:end], stored.head() | said

    def answer_of_upload(self, bucket, key, asked, body):
        if self.command == "POST" and "uploads" in asked:
            name = f"upload{next(NAMES):06}"
            bucket.uploads[name] = (key, {})
            answer = f"<Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            return 200, f"<InitiateMultipartUploadResult>{answer}</InitiateMultipartUploadResult>"
        name = asked["uploadId"]
        if self.command == "PUT":
            etag = f'"{hashlib.md5(body).hexdigest()}"'
            upload_of(bucket, key, name)[int(asked["partNumber"])] = (etag, body)
            return 200, b"", {"ETag": etag}
        if self.command == "DELETE":
            upload_of(bucket, key, name)
            del bucket.uploads[name]
            return (204,)
        stored = complete(bucket, key, name, body)
        answer = f"<Key>{escape(key)}</Key><ETag>{escape(stored.etag)}</ETag>"
        answer = f"<CompleteMultipartUploadResult>{answer}</CompleteMultipartUploadResult>"
        return 200, answer, {"x-goog-generation": stored.generation}


class Server(http.server.ThreadingHTTPServer):
    # Five, as by itself, are too few where every request has a connection of its own.
    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
