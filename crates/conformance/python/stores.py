"""Starts a server with the S3 protocol for a test, and always stops it."""
import contextlib
import os
import subprocess
import sys
import urllib.request

import boto3

import serving

# moto keeps objects in memory. It ends with its standard input, and so with the test.
MOTO = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("ready", server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""

KEY, SECRET, TOKEN = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEXAMPLETOKEN"


class Store:
    """A running server and a client of it."""

    def __init__(self, process, port):
        self.process, self.url = process, f"http://127.0.0.1:{port}"
        self.client = self.connect("s3")

    def connect(self, service):
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=KEY,
                            aws_secret_access_key=SECRET)

    def environment(self, **others):
        """The environment variables with its address and credentials."""
        ours = {name: value for name, value in os.environ.items()
                if not name.startswith(("AWS_", "S3_")) and name.upper() not in ("HTTP_PROXY", "HTTPS_PROXY")}
        return {**ours, "AWS_ENDPOINT_URL": self.url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET, **others}

    def names(self, bucket, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def read(self, bucket, key):
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def write(self, bucket, key, data):
        self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def download(self, bucket, prefix, folder):
        """All objects of a prefix, as files below a folder."""
        for name in self.names(bucket, prefix):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.client.download_file(bucket, name, path)

    def upload(self, folder, bucket, prefix):
        for name in os.listdir(folder):
            self.client.upload_file(os.path.join(folder, name), bucket, f"{prefix}/{name}")

    def require_keys(self):
        """Requires a valid key from now on; returns one."""
        users = self.connect("iam")
        users.create_user(UserName="tester")
        key = users.create_access_key(UserName="tester")["AccessKey"]
        allow = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
        users.put_user_policy(UserName="tester", PolicyName="all", PolicyDocument=allow)
        self.forgive(0)
        return key["AccessKeyId"], key["SecretAccessKey"]

    def forgive(self, count):
        """Accepts this many more requests with any key."""
        request = urllib.request.Request(f"{self.url}/moto-api/reset-auth", data=str(count).encode(), method="POST",
                                         headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(request).close()

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def s3():
    """A running store without buckets."""
    process = subprocess.Popen([sys.executable, "-c", MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        line = serving.wait_ready(process)
        yield Store(process, line.split()[1])
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
