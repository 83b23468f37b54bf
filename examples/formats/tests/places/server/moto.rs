//! Starts `moto_server`, which implements S3.

use super::Dialect;

const SECRET: &str = "wJalrXUtnFEMI-only-for-tests";

pub static DIALECT: Dialect = Dialect {
    name: "moto",
    program: || "moto_server".to_owned(),
    install: "install it with: pip install 'moto[server]'",
    arguments: &["-H", "127.0.0.1", "-p", "PORT"],
    variables: &[],
    root: "",
    question: "",
    // The server does not check signatures; a request without one counts as foreign.
    head: "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, \
           Signature=0\r\n",
    create: "",
    list: "list-type=2",
    list_uploads: "uploads",
    element: "Key",
    begin: ("POST", "uploads"),
    scheme: "s3://",
    host: "",
    service: "S3",
    feature: "s3",
    passed: "AWS_*",
    secret: SECRET,
    credentials: &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    unsigned: "AWS_SKIP_SIGNATURE",
    elsewhere: &[("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")],
    remedy: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    environment: &[
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIAONLYFORTESTS"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ],
    endpoint: "AWS_ENDPOINT_URL",
};
